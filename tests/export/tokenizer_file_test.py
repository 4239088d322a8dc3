"""`tokenizer.json` gives the token ids of each family's packer."""

import functools
import json
import logging

from keras import ops
import numpy as np
import pytest
import tokenizers

from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders import huggingface_tokenizer
from tf_adapters.encoders import minilm
from tf_adapters.export import encoder_folder
from tf_adapters.export import odd_texts
from tf_adapters.export import tokenizer_file

pytestmark = pytest.mark.integration

_NAMES = {
    "token_ids": "ids",
    "padding_mask": "attention_mask",
    "segment_ids": "type_ids",
}


def _slow(*names):
    return [pytest.param(name, marks=pytest.mark.slow) for name in names]


_TEXTS = list(SENTENCES)


@functools.cache
def _packer(name, max_length=64):
    folder = huggingface_folders.folder(name)
    return TextPacker(
        huggingface_tokenizer.load_huggingface_tokenizer(folder), max_length
    )


def _written(packer, folder, encoder=None):
    assert tokenizer_file.write(packer, folder, encoder)
    return tokenizers.Tokenizer.from_file(str(folder / tokenizer_file.FILE))


def _assert_equal(packer, tokenizer, *columns):
    features = packer(*columns)
    rows = list(zip(*columns, strict=True)) if columns[1:] else columns[0]
    found = tokenizer.encode_batch(rows)
    for name, ours in features.items():
        theirs = [getattr(row, _NAMES[name]) for row in found]
        np.testing.assert_array_equal(ops.convert_to_numpy(ours), theirs)


@pytest.mark.parametrize(
    "name", ["bert", *_slow("mpnet", "modernbert", "roberta_bare")]
)
def test_the_ids_are_the_packers(name, tmp_path):
    packer = _packer(name)
    tokenizer = _written(packer, tmp_path)
    # Some of these texts are cut.
    _assert_equal(packer, tokenizer, [*odd_texts.make(), *_TEXTS[:40]])
    # Texts that are cut together may lose another token; see docs/serving.md.
    short = [text for text in _TEXTS if len(text) < 25]
    _assert_equal(packer, tokenizer, short, short[::-1])


@pytest.mark.parametrize("name", ["albert", "deberta", *_slow("xlm_roberta")])
def test_equally_likely_pieces_may_be_in_another_order(name, tmp_path):
    packer = _packer(name)
    tokenizer = _written(packer, tmp_path)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    texts = odd_texts.make()
    found = tokenizer.encode_batch(texts, add_special_tokens=False)
    ours = [row.tolist() for row in packer.token_arrays(texts)]
    pairs = list(zip(ours, [row.ids for row in found], strict=True))
    assert all(sorted(a) == sorted(b) for a, b in pairs)
    assert sum(a == b for a, b in pairs) > 0.95 * len(pairs)
    # The vocabulary knows most of the texts, so that the comparison counts.
    assert len({i for row in ours for i in row}) > 100


def test_the_encoders_own_file_is_taken(tmp_path):
    folder = minilm.minilm_folder()
    packer = TextPacker(
        huggingface_tokenizer.load_huggingface_tokenizer(folder), 32
    )
    tokenizer = _written(packer, tmp_path, folder)
    own = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    new = json.loads((tmp_path / "tokenizer.json").read_text("utf-8"))
    assert new["decoder"] == own["decoder"] is not None
    _assert_equal(packer, tokenizer, [*_TEXTS[:20], "[SEP] is plain text"])
    assert encoder_folder.license_of(folder) == "apache-2.0"


def test_a_damaged_or_wrong_own_file_is_not_taken(tmp_path, caplog):
    packer, other = _packer("bert"), tmp_path / "encoder"
    other.mkdir()
    path = other / "tokenizer.json"
    path.write_text('{"added_tokens": [], "model": 3}')
    with caplog.at_level(logging.WARNING):
        tokenizer = _written(packer, tmp_path, other)
    assert "no file of the library `tokenizers`" in caplog.text
    _assert_equal(packer, tokenizer, _TEXTS[:20])
    # A tokenizer of another vocabulary.
    source = huggingface_folders.folder("modernbert") / "tokenizer.json"
    path.write_bytes(source.read_bytes())
    _assert_equal(packer, _written(packer, tmp_path, other), _TEXTS[:20])


def test_a_tokenizer_without_equal_is_refused(tmp_path, caplog):
    class Reversed(TextPacker):
        def token_arrays(self, texts):
            return [row[::-1] for row in super().token_arrays(texts)]

    packer = Reversed(_packer("bert").tokenizer, 64)
    with caplog.at_level(logging.WARNING):
        assert not tokenizer_file.write(packer, tmp_path)
    assert "no tokenizer.json and no run.py" in caplog.text
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        ("---\nlicense: mit\n---\n# A model", "mit"),
        ("---\nlicense: [mit, cc0-1.0]\n---\n", "mit, cc0-1.0"),
        ("---\nlicense: [\n---\n", ""),
        ("---\n- a list\n---\n", ""),
        ("# No front matter", ""),
    ],
)
def test_the_license_is_in_the_model_card(card, expected, tmp_path):
    (tmp_path / "README.md").write_text(card)
    assert encoder_folder.license_of(tmp_path) == expected
