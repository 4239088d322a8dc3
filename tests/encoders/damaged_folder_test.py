"""Tests that damaged encoder folders give an error message, no traceback.

Nothing is allocated in a size that a file claims, which can be terabytes.
"""

import json
import os
import shutil

import keras_hub
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests import tiny
from tests.fixtures import huggingface_folders
from tf_adapters.common.errors import UserError
from tf_adapters.encoders import load as load_lib

pytestmark = pytest.mark.integration
_NESTED = json.loads("[" * 300 + "]" * 300)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("preset")
    tiny.encoder().backbone.save_to_preset(str(folder))
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]
    keras_hub.models.BertTokenizer(tokens).save_to_preset(str(folder))
    return folder


@pytest.fixture
def copy(tmp_path, preset):
    """Returns a function that copies a checkpoint, or the preset."""

    def copy(name):
        is_preset = name == "preset"
        source = preset if is_preset else huggingface_folders.folder(name)
        return shutil.copytree(source, tmp_path / name)

    return copy


def _edit(path, change):
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def _refused(folder, message):
    with pytest.raises(UserError, match=message) as error:
        load_lib.load_encoder(folder)
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model_type", ["bert"]),
        ("vocab_size", 10**12),
        ("vocab_size", "67"),
        ("num_hidden_layers", 2**31),
        ("num_hidden_layers", 2.0),
        ("num_hidden_layers", True),
        ("hidden_size", [24]),
        ("hidden_size", 10**400),
        ("num_attention_heads", 0),
        ("num_attention_heads", 7),
        ("intermediate_size", float("inf")),
        ("max_position_embeddings", None),
        ("type_vocab_size", 10**12),
        ("type_vocab_size", -1),
        ("hidden_act", ["gelu"]),
        ("hidden_act", "x" * 5000),
        ("layer_norm_eps", "1e-12"),
        ("layer_norm_eps", float("nan")),
        ("hidden_dropout_prob", 10**400),
        ("attention_probs_dropout_prob", -1),
        ("hidden_size", _NESTED),
    ],
)
def test_a_setting_is_named(copy, key, value):
    folder = copy("bert")
    _edit(folder / "config.json", lambda config: config.update({key: value}))
    _refused(folder, rf"config.json.*({key}|an encoder of \d+)")


@pytest.mark.parametrize("value", [None, "1", -1, 10**12])
def test_the_first_position_is_within_the_table(copy, value):
    folder = copy("roberta_bare")
    _edit(folder / "config.json", lambda c: c.update(pad_token_id=value))
    _refused(folder, "`pad_token_id` must be a number from 0 to")


@pytest.mark.parametrize("name", ["mpnet", "roberta_bare"])
@pytest.mark.parametrize("value", [None, "514"])
def test_the_number_of_positions_is_a_number(copy, name, value):
    folder = copy(name)
    key = "max_position_embeddings"
    _edit(folder / "config.json", lambda config: config.update({key: value}))
    _refused(folder, f"`{key}` must be a number from 1 to")


def _not_finite(tensors):
    tensors["encoder.layer.0.output.dense.bias"][3] = np.nan


def _integers(tensors):
    name = "encoder.layer.0.output.dense.bias"
    tensors[name] = tensors[name].astype("int32")


@pytest.mark.parametrize(
    ("change", "message"),
    [(_not_finite, "not finite"), (_integers, "is of type int32")],
)
def test_tensors_are_finite_numbers(copy, change, message):
    folder = copy("bert")
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")
    _refused(folder, f"`encoder.layer.0.output.dense.bias`.*{message}")


@pytest.mark.parametrize(
    ("name", "file", "content"),
    [
        ("bert", "vocab.txt", b""),
        ("bert", "vocab.txt", b"[UNK]\n\xff\n"),
        ("bert", "tokenizer_config.json", b'{"do_lower_case": "no"}'),
        ("bert", "tokenizer_config.json", b'{"strip_accents": []}'),
        ("roberta_bare", "vocab.json", b"{"),
        ("roberta_bare", "vocab.json", b'{"a": ' * 100_000),
        ("roberta_bare", "vocab.json", b'{"<s>": 0.5}'),
        ("roberta_bare", "vocab.json", b"[]"),
        ("roberta_bare", "merges.txt", b"a\n"),
        ("roberta_bare", "merges.txt", b"\xff"),
        ("xlm_roberta", "sentencepiece.bpe.model", b"\x0a\xff"),
        ("preset", "config.json", b"[]"),
        ("preset", "tokenizer.json", b'{"config": []}'),
        ("preset", "assets/tokenizer/vocabulary.txt", b"\xff"),
        ("preset", "model.weights.h5", b""),
    ],
)
def test_a_file_is_refused(copy, name, file, content):
    folder = copy(name)
    (folder / file).write_bytes(content)
    _refused(folder, name)


@pytest.mark.parametrize(
    ("name", "file"),
    [
        *(("bert", file) for file in ("vocab.txt", "tokenizer_config.json")),
        ("preset", "assets/tokenizer/vocabulary.txt"),
        ("preset", "model.weights.h5"),
    ],
)
def test_a_pipe_is_not_opened(copy, name, file):
    folder = copy(name)
    (folder / file).unlink()
    os.mkfifo(folder / file)
    _refused(folder, f"{file}` cannot be read: it is not a file")


@pytest.mark.parametrize("name", ["xlm_roberta", "deberta", "albert"])
@pytest.mark.parametrize("piece", [b"\0", b"\xff"])
def test_a_piece_is_text_without_nul(copy, name, piece):
    folder = copy(name)
    (path,) = folder.glob("*.model")
    content = path.read_bytes()
    before = b"\n\x08\n\x01" + b"e\x15"
    assert before in content
    path.write_bytes(content.replace(before, before[:4] + piece + b"\x15"))
    _refused(folder, "is damaged: a piece (has a NUL|is not UTF-8)")


def test_a_vocabulary_has_a_limited_size(copy):
    folder = copy("bert")
    with (folder / "vocab.txt").open("ab") as file:
        file.truncate(1 << 40)
    _refused(folder, "vocab.txt` cannot be read: it is larger than")


@pytest.mark.parametrize("file", ["train.txt", "train.json"])
def test_other_files_may_have_any_size(copy, file):
    folder = copy("bert")
    with (folder / file).open("wb") as opened:
        opened.truncate(1 << 40)
    load_lib.load_encoder(folder)


def test_a_vocabulary_is_no_larger_than_its_encoder(copy):
    folder = copy("bert")
    with (folder / "vocab.txt").open("a") as file:
        file.writelines(f"q{i}\n" for i in range(5000))
    _refused(folder, "ids up to 5,066, but its weights are for 67 tokens")


@pytest.mark.parametrize("file", ["config.json", "model.safetensors"])
def test_a_folder_in_place_of_a_file(copy, file):
    folder = copy("bert")
    (folder / file).unlink()
    (folder / file).mkdir()
    _refused(folder, f"{file}` (cannot be read|is missing)")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocabulary_size", 10**12),
        ("num_layers", 2**31),
        ("hidden_dim", [16]),
        ("num_heads", 5),
        ("dropout", "0.1"),
        ("name", ["bert"]),
    ],
)
def test_a_setting_of_a_preset_is_refused(copy, key, value):
    folder = copy("preset")
    _edit(folder / "config.json", lambda c: c["config"].update({key: value}))
    _refused(folder, "preset")


@pytest.mark.parametrize("value", [["BertBackbone"], "FNetBackbone", None])
def test_a_preset_of_another_kind_is_not_built(copy, value):
    folder = copy("preset")
    _edit(folder / "config.json", lambda c: c.update(class_name=value))
    _refused(folder, "expected an encoder of one of the kinds BertBackbone")


def test_a_weight_of_a_preset_is_finite(copy):
    folder = copy("preset")
    backbone = tiny.encoder().backbone
    backbone.weights[0].assign(np.full(backbone.weights[0].shape, np.inf))
    backbone.save_weights(folder / "model.weights.h5")
    _refused(folder, "token_embedding.*not finite")


def test_a_tokenizer_that_pads_is_refused(copy):
    folder = copy("preset")
    _edit(
        folder / "tokenizer.json",
        lambda c: c["config"].update(sequence_length=10**12),
    )
    _refused(folder, "`sequence_length` must be null")


def test_a_name_of_any_length_is_refused():
    _refused("x" * 5000, "Unknown encoder")
    _refused("x/" * 5000, "There is no folder")
