"""Tests the offsets of tokens, and that tokens equal the tokenizer's."""

import json
import unicodedata

import numpy as np
import pytest

from tests.fixtures import huggingface_folders
import tf_adapters

pytestmark = pytest.mark.integration

TEXTS = [
    "the film  is not good,very dull!",
    "  Élan: naïve   café — it's (UN) 1,234.5% of ½ ",
    "電影 is 很好 film。ß İ I\u0307 e\u0301 \u00a0x\t\n y",
    "😀film 👍🏽 good\u200b bad\u200d ﬁ Ω ™…",
    "unbelievable " + "x" * 120 + " film",
    "",
]


def _packer(name):
    folder = huggingface_folders.folder(name)
    return tf_adapters.TextPacker(tf_adapters.load_encoder(str(folder))[1], 128)


@pytest.fixture(scope="module")
def tokenizer_json(tmp_path_factory):
    """Makes a folder whose only vocabulary is `tokenizer.json`."""
    transformers = pytest.importorskip("transformers")
    folder = tmp_path_factory.mktemp("fast")
    source = huggingface_folders.folder("bert")
    fast = transformers.AutoTokenizer.from_pretrained(str(source))
    fast.save_pretrained(folder)
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((source / name).read_bytes())
    (folder / "vocab.txt").unlink(missing_ok=True)
    assert json.loads((folder / "tokenizer.json").read_text())
    return tf_adapters.TextPacker(tf_adapters.load_encoder(str(folder))[1], 128)


@pytest.fixture(
    scope="module", params=["bert", "roberta_bare", "xlm_roberta", "json"]
)
def packer(request):
    if request.param == "json":
        return request.getfixturevalue("tokenizer_json")
    return _packer(request.param)


def test_ids_are_those_of_the_encoders_tokenizer(packer):
    for text, (ids, offsets) in zip(
        TEXTS, packer.tokenize_with_offsets(TEXTS), strict=True
    ):
        expected = packer.tokenize([text]).values.numpy()
        np.testing.assert_array_equal(ids, expected)
        assert offsets.shape == (len(ids), 2)


def test_tokens_cover_the_text_in_order_and_without_spaces(packer):
    for text, (_, offsets) in zip(
        TEXTS, packer.tokenize_with_offsets(TEXTS), strict=True
    ):
        covered = set()
        for begin, end in offsets.tolist():
            assert 0 <= begin <= end <= len(text)
            assert text[begin:end] == text[begin:end].strip()
            covered.update(range(begin, end))
        assert (np.diff(offsets[:, 0]) >= 0).all()
        left_out = {c for i, c in enumerate(text) if i not in covered}
        # Spaces, stripped accents, and invisible characters.
        assert all(
            c.isspace() or unicodedata.category(c) in ("Cf", "Mn", "Cc")
            for c in left_out
        ), left_out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXTS[0], ["film", "good", "dull"]),
        (TEXTS[1], ["Élan", "naïve", "café", "UN"]),
        (TEXTS[2], ["電", "影", "film"]),
        # An emoji is not punctuation.
        (TEXTS[3], ["😀film", "good"]),
    ],
)
def test_words_have_their_own_characters(text, words):
    """WordPiece splits at spaces, punctuation and Chinese characters."""
    ((_, offsets),) = _packer("bert").tokenize_with_offsets([text])
    begins, ends = map(set, offsets.T.tolist())
    for word in words:
        begin = text.index(word)
        assert begin in begins and begin + len(word) in ends


def test_other_tokenizers_are_refused():
    with pytest.raises(ValueError, match="Received: object"):
        from tf_adapters.data.tokens import offsets

        offsets.tokenize_with_offsets(object(), ["a"])
