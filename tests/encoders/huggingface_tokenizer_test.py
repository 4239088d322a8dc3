"""Compares token ids with transformers' and SentencePiece's, on odd texts."""

import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys

import keras_hub
import pytest
import sentencepiece
import tensorflow as tf
from tokenizers import normalizers
import transformers

from tests.fixtures import huggingface_folders
from tests.fixtures.sentences import SENTENCES
from tests.interop import folders
from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import special_tokens
from tf_adapters.data.tokens.packing import TextPacker
from tf_adapters.encoders import graph_tokenizers
from tf_adapters.encoders import huggingface_tokenizer
from tf_adapters.encoders import minilm
from tf_adapters.encoders import own_tokenizers
from tf_adapters.encoders.modernbert_tokenizer import ModernBertTokenizer
from tf_adapters.encoders.word_piece import WordPieceTokenizer

pytestmark = pytest.mark.integration

TEXTS = list(SENTENCES)
# The graph's BPE merges pair by pair: a few dozen texts take a second.
SOME = TEXTS[:60]
LITERAL = "literal [SEP] and </s> in a text"


def ids_of(tokenizer, texts):
    """Returns the ids of training, without special tokens."""
    return packed_ids(TextPacker(tokenizer, 10_000), texts)


def packed_ids(packer, texts):
    rows, _ = packer.tokenize_rows(texts)
    return [row[1:-1].tolist() for row in rows]


@functools.cache
def packer_of(name):
    """Returns a packer, shared because tracing a tokenizer takes seconds."""
    folder = huggingface_folders.folder(name)
    return TextPacker(
        huggingface_tokenizer.load_huggingface_tokenizer(folder), 10_000
    )


def expected_ids(tokenizer, texts, **options):
    options = {"split_special_tokens": True, **options}
    return tokenizer(texts, add_special_tokens=False, **options)["input_ids"]


@functools.cache
def minilm_vocabulary():
    text = (minilm.minilm_folder() / "vocab.txt").read_text(encoding="utf-8")
    return text.removesuffix("\n").split("\n")


@pytest.mark.parametrize(
    "options",
    [
        {"lowercase": True},
        {"lowercase": False},
        {"lowercase": True, "strip_accents": False},
        {"lowercase": False, "strip_accents": True, "split_on_cjk": False},
    ],
)
def test_word_piece_gives_the_ids_of_transformers(options):
    names = {
        "lowercase": "do_lower_case",
        "split_on_cjk": "tokenize_chinese_chars",
    }
    original = transformers.BertTokenizer(
        vocab={t: i for i, t in enumerate(minilm_vocabulary())},
        **{names.get(name, name): value for name, value in options.items()},
    )
    tokenizer = WordPieceTokenizer(minilm_vocabulary(), **options)
    assert ids_of(tokenizer, TEXTS) == expected_ids(original, TEXTS)


@pytest.mark.parametrize("split_on_cjk", [True, False])
def test_the_longest_word_has_100_characters(split_on_cjk, capfd):
    letters = ["a", "я", "ข", "😀", "中"]
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *letters]
    tokens += [f"##{letter}" for letter in letters]
    original = transformers.BertTokenizer(
        vocab={t: i for i, t in enumerate(tokens)},
        tokenize_chinese_chars=split_on_cjk,
    )
    tokenizer = WordPieceTokenizer(tokens, split_on_cjk=split_on_cjk)
    words = [letter * n for letter in letters for n in (34, 100, 101, 500)]
    # Long texts of short words, and a word that accents make longer.
    texts = [*words, "a" * 60 + "," + "a" * 60, "a " * 200, "á" * 100]
    assert tokenizer(texts) == expected_ids(original, texts)
    # RE2 would say that a pattern is too large for it.
    assert not capfd.readouterr().err


def test_word_piece_keeps_its_options_in_its_config():
    source = huggingface_folders.folder("bert")
    vocabulary = (source / "vocab.txt").read_text(encoding="utf-8").split("\n")
    texts = ["Café FILM 中文", "the café"]
    seen = []
    for options in ({}, {"lowercase": False}, {"split_on_cjk": False}):
        tokenizer = WordPieceTokenizer(vocabulary, **options)
        copy = WordPieceTokenizer.from_config(tokenizer.get_config())
        copy.set_vocabulary(vocabulary)
        assert copy(texts) == tokenizer(texts)
        seen.append(tokenizer(texts))
    assert seen[0] != seen[1] != seen[2] != seen[0]


@pytest.mark.slow
def test_word_piece_lowercases_alike_on_a_turkish_machine():
    """Runs in its own process, because the locale is read once."""
    folder = huggingface_folders.folder("bert")
    code = (
        "from tf_adapters.encoders import huggingface_tokenizer\n"
        f"folder = {str(folder)!r}\n"
        "load = huggingface_tokenizer.load_huggingface_tokenizer\n"
        "tokenizer = load(folder)\n"
        "print(tokenizer(['INSIDE IT']) == tokenizer(['inside it']))\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "LC_ALL": "tr_TR.UTF-8"},
        cwd=pathlib.Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.split() == ["True"]


def test_byte_pairs_give_the_ids_of_transformers():
    folder = huggingface_folders.folder("roberta_bare")
    original = transformers.RobertaTokenizer.from_pretrained(str(folder))
    received = packed_ids(packer_of("roberta_bare"), SOME)
    assert received == expected_ids(original, SOME)


def test_byte_pairs_of_blank_lines_rare_spaces_and_the_digit_six(tmp_path):
    """KerasHub's code has other ids for each of these texts."""
    source = huggingface_folders.folder("roberta_bare")
    shutil.copy(source / "config.json", tmp_path)
    vocabulary = json.loads((source / "vocab.json").read_text("utf-8"))
    # A merge of all real vocabularies.
    vocabulary |= {"ĊĊ": len(vocabulary)}
    (tmp_path / "vocab.json").write_text(json.dumps(vocabulary))
    merges = (source / "merges.txt").read_text("utf-8").rstrip() + "\nĊ Ċ\n"
    (tmp_path / "merges.txt").write_text(merges, "utf-8")
    texts = ["a.\n\nB", "\n\na \n\n b\n\n", "a \u2028 b \x85c", "२०१६ ६ a"]
    original = transformers.RobertaTokenizer.from_pretrained(str(tmp_path))
    expected = expected_ids(original, texts)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    assert ids_of(tokenizer, texts) == expected
    preset = keras_hub.models.RobertaTokenizer(vocabulary, tokenizer.merges)
    preset = own_tokenizers.of_preset(preset)
    assert ids_of(preset, texts) == expected
    assert preset(texts[0]) == expected[0]
    special = ("[CLS]", "[SEP]", "[PAD]", "[MASK]")
    vocabulary |= {t: len(vocabulary) + i for i, t in enumerate(special)}
    assert ModernBertTokenizer(vocabulary, tokenizer.merges)(texts) == expected


def test_sentence_pieces_give_the_ids_of_sentencepiece():
    """Ties between segmentations are broken differently; scores must agree."""
    folder = huggingface_folders.folder("xlm_roberta")
    original = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "sentencepiece.bpe.model")
    )
    received = packed_ids(packer_of("xlm_roberta"), TEXTS)
    expected = [original.encode(text) for text in TEXTS]
    num_equal = 0
    for ids, row in zip(expected, received, strict=True):
        # fairseq puts <pad> before the pieces and swaps <unk>, which is 0.
        shifted = [3 if i == 0 else i + 1 for i in ids]
        num_equal += row == shifted
        scores = sum(original.get_score(i) for i in ids)
        pieces = [0 if i == 3 else i - 1 for i in row]
        assert abs(sum(map(original.get_score, pieces)) - scores) < 1e-3
    assert num_equal > 0.95 * len(TEXTS)


@pytest.mark.parametrize("name", ["bert", "roberta_bare", "xlm_roberta"])
def test_special_tokens_in_a_text_are_text(name):
    packer = packer_of(name)
    (row,) = packed_ids(packer, [LITERAL])
    special = {packer.special_tokens.start, packer.special_tokens.end}
    assert not special & set(row)


@pytest.fixture
def only_tokenizer_json(tmp_path):
    """Makes a folder whose only vocabulary is `tokenizer.json`."""
    shutil.copy(minilm.minilm_folder() / "config.json", tmp_path)
    shutil.copy(minilm.minilm_folder() / "tokenizer.json", tmp_path)
    return tmp_path


def test_folder_with_only_tokenizer_json(only_tokenizer_json):
    original = transformers.AutoTokenizer.from_pretrained(only_tokenizer_json)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(
        only_tokenizer_json
    )
    assert isinstance(tokenizer, huggingface_tokenizer.HuggingFaceTokenizer)
    texts = SOME + [LITERAL, "long " * 200]
    options = {"truncation": False, "padding": False}
    assert tokenizer(texts) == expected_ids(original, texts, **options)
    pairs = (texts, texts[::-1])
    expected = original(*pairs, split_special_tokens=True, **options)
    rows, _ = TextPacker(tokenizer, 10_000).tokenize_rows(*pairs)
    assert [row.tolist() for row in rows] == expected["input_ids"]
    received = TextPacker(tokenizer, 64).tokenize_rows(*pairs)
    exported = TextPacker(tokenizer.in_graph(), 64).tokenize_rows(*pairs)
    for a, b in zip(received, exported, strict=True):
        assert [list(row) for row in a] == [list(row) for row in b]


def test_graph_tokenizer_of_a_byte_pair_tokenizer_json(tmp_path):
    """Another test compares the ids of this vocabulary."""
    source = huggingface_folders.folder("roberta_bare")
    original = transformers.RobertaTokenizer.from_pretrained(str(source))
    original.save_pretrained(str(tmp_path))
    shutil.copy(source / "config.json", tmp_path)
    for name in ("vocab.json", "merges.txt"):
        (tmp_path / name).unlink(missing_ok=True)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    texts = [*SOME, LITERAL]
    assert tokenizer(texts) == expected_ids(original, texts)
    assert tokenizer.separator_ids == [2, 2]
    exported = tokenizer.in_graph()
    folders = huggingface_tokenizer.load_huggingface_tokenizer(source)
    assert exported.vocabulary == folders.vocabulary
    rules = [m for m in folders.merges if not m.startswith("#version")]
    assert exported.merges == rules
    assert exported.add_prefix_space == folders.add_prefix_space
    assert exported.unsplittable_tokens == folders.unsplittable_tokens
    assert special_tokens.special_tokens_of(
        exported
    ) == special_tokens.special_tokens_of(folders)


def test_python_tokenizer_in_a_graph_says_what_to_do(only_tokenizer_json):
    packer = TextPacker(
        huggingface_tokenizer.load_huggingface_tokenizer(only_tokenizer_json),
        16,
    )
    with pytest.raises(ValueError, match=r"tokenizer.in_graph\(\)"):
        tf.function(packer).get_concrete_function(
            tf.TensorSpec([None], tf.string)
        )


def test_no_graph_tokenizer_for_other_kinds(only_tokenizer_json):
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(
        only_tokenizer_json
    )
    assert tokenizer.in_graph() is not None
    tokenizer._tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    assert tokenizer.in_graph() is None


@pytest.mark.parametrize(
    ("options", "normalizer", "lowercases"),
    [
        ({}, None, True),
        ({"do_lower_case": False}, None, False),
        ({}, {"lowercase": False}, False),
        ({"do_lower_case": True}, {"lowercase": False}, True),
    ],
)
def test_who_decides_on_lowercase(tmp_path, options, normalizer, lowercases):
    source = huggingface_folders.folder("bert")
    shutil.copy(source / "vocab.txt", tmp_path)
    shutil.copy(source / "config.json", tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    if normalizer:
        content = json.dumps({"normalizer": normalizer})
        (tmp_path / "tokenizer.json").write_text(content)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    unknown = tokenizer.token_to_id("[UNK]")
    assert (tokenizer(["FILM"]) != [[unknown]]) is lowercases


@pytest.mark.parametrize("key", ["num_hidden_layers", "num_labels"])
def test_a_configuration_that_needs_all_memory_is_refused(
    key, only_tokenizer_json
):
    folders.edit(only_tokenizer_json / "config.json", key, 10**12)
    with pytest.raises(UserError, match=f"`{key}` must be at most"):
        huggingface_tokenizer.load_huggingface_tokenizer(only_tokenizer_json)


def test_folder_without_a_vocabulary(tmp_path):
    source = huggingface_folders.folder("bert")
    shutil.copy(source / "config.json", tmp_path)
    with pytest.raises(ValueError, match="no vocabulary.*config.json"):
        huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)


def test_vocabulary_without_special_tokens(tmp_path):
    source = huggingface_folders.folder("bert")
    shutil.copy(source / "config.json", tmp_path)
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    with pytest.raises(ValueError, match="special token"):
        huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)


def test_a_tokenizer_with_added_tokens_has_none_in_a_graph():
    words = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "film")
    content = {
        "model": {
            "type": "WordPiece",
            "vocab": {word: index for index, word in enumerate(words)},
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
        },
        "normalizer": {
            "type": "BertNormalizer",
            "lowercase": True,
            "strip_accents": None,
            "handle_chinese_chars": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "added_tokens": [{"id": 1, "content": "[UNK]", "special": True}],
    }
    assert graph_tokenizers.of_content(content, "[CLS]") is not None
    added = {"id": 6, "content": "[E1]", "special": False}
    content["added_tokens"].append(added)
    assert graph_tokenizers.of_content(content, "[CLS]") is None


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("added_tokens.json", {"zxqw": 30522}),
        (
            "tokenizer_config.json",
            {
                "tokenizer_class": "BertTokenizer",
                "added_tokens_decoder": {"30522": {"content": "zxqw"}},
            },
        ),
    ],
)
def test_words_added_to_a_vocabulary_are_found(tmp_path, file, content):
    for name in ("vocab.txt", "config.json"):
        shutil.copy(minilm.minilm_folder() / name, tmp_path)
    plain = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    assert isinstance(plain, WordPieceTokenizer)
    (tmp_path / file).write_text(json.dumps(content))
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    text = "a zxqw film"
    original = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert tokenizer([text]) == expected_ids(original, [text])
    assert 30522 in tokenizer([text])[0]


@pytest.mark.parametrize("name", ["roberta_bare", "xlm_roberta", "deberta"])
def test_words_added_to_other_vocabularies_are_found(tmp_path, name):
    folder = shutil.copytree(huggingface_folders.folder(name), tmp_path / "e")
    special = transformers.AutoTokenizer.from_pretrained(folder)
    path = folder / "added_tokens.json"
    path.write_text(json.dumps({special.mask_token: special.mask_token_id}))
    # Special tokens of older folders are declared in another file.
    declared = folder / "special_tokens_map.json"
    declared.write_text(json.dumps({"additional_special_tokens": ["<e1>"]}))
    path.write_text(path.read_text()[:-1] + f', "<e1>": {len(special)}}}')
    load = huggingface_tokenizer.load_huggingface_tokenizer
    assert not isinstance(
        load(folder), huggingface_tokenizer.HuggingFaceTokenizer
    )
    declared.unlink()
    path.write_text(json.dumps({"zxqw": len(special)}))
    original = transformers.AutoTokenizer.from_pretrained(folder)
    ids = load(folder)(["the zxqw film"])
    assert ids == expected_ids(original, ["the zxqw film"])
    assert original.convert_tokens_to_ids("zxqw") in ids[0]


def test_a_tokenizer_of_another_class_is_not_word_piece(tmp_path):
    for name in ("vocab.txt", "config.json"):
        shutil.copy(minilm.minilm_folder() / name, tmp_path)
    name = "BertJapaneseTokenizer"
    folders.edit(tmp_path / "config.json", "tokenizer_class", name)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    assert type(tokenizer._tokenizer).__name__ == name
    assert tokenizer.in_graph() is None
    with pytest.raises(UserError, match="in Python and has no offsets"):
        tokenizer.with_offsets(["a film"])
    with pytest.raises(UserError, match="in Python and has no form"):
        tokenizer.to_json()
    folders.edit(tmp_path / "config.json", "tokenizer_class", "NoTokenizer")
    with pytest.raises(UserError, match="cannot load the tokenizer `NoToke"):
        huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)


def test_a_class_that_reads_tokenizer_json_only_is_given_that(
    only_tokenizer_json,
):
    shutil.copy(minilm.minilm_folder() / "vocab.txt", only_tokenizer_json)
    normalizer = {"type": "BertNormalizer", "clean_text": True}
    normalizer |= {"handle_chinese_chars": False, "strip_accents": False}
    folders.edit(
        only_tokenizer_json / "tokenizer.json",
        "normalizer",
        {**normalizer, "lowercase": True},
    )
    path = only_tokenizer_json / "tokenizer_config.json"
    names = ("unk", "cls", "sep", "pad", "mask")
    options = {f"{n}_token": f"[{n.upper()}]" for n in names}
    options["tokenizer_class"] = "PreTrainedTokenizerFast"
    path.write_text(json.dumps(options))
    original = transformers.AutoTokenizer.from_pretrained(only_tokenizer_json)
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(
        only_tokenizer_json
    )
    texts = ["a caf\u00e9", "\u4e2d\u6587x"]
    ids = expected_ids(original, texts, truncation=False, padding=False)
    assert ids_of(tokenizer.in_graph(), texts) == tokenizer(texts) == ids


def test_the_last_of_equal_tokens_counts(tmp_path):
    source = huggingface_folders.folder("bert")
    shutil.copy(source / "config.json", tmp_path)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "", "b"]
    tokens += ["a", "", "c"]
    (tmp_path / "vocab.txt").write_text("\n".join(tokens) + "\n")
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(tmp_path)
    assert tokenizer(["a b c"]) == [[8, 7, 10]]
    assert len(tokenizer.get_vocabulary()) == len(tokens)


def test_a_tokenizer_without_special_tokens_is_refused(only_tokenizer_json):
    folders.edit(only_tokenizer_json / "tokenizer.json", "post_processor", None)
    options = {"tokenizer_class": "PreTrainedTokenizerFast"}
    path = only_tokenizer_json / "tokenizer_config.json"
    path.write_text(json.dumps(options))
    with pytest.raises(UserError, match="adds no tokens around a text"):
        huggingface_tokenizer.load_huggingface_tokenizer(only_tokenizer_json)
