"""Tests the errors of `export_model` for wrong arguments."""

import pytest
import tensorflow as tf

from tests import commands
from tests import tiny
import tf_adapters
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.export import check_texts
from tf_adapters.export import many_tasks
from tf_adapters.export import onnx_bank


@pytest.fixture(scope="module")
def parts():
    _, tokenizer = tf_adapters.load_encoder(commands.ENCODER)
    head = tf_adapters.heads.Classification(("no", "yes"))
    encoder = tiny.encoder(num_blocks=1)
    model = tf_adapters.adapt(encoder, methods.IA3(), head)
    return model, tokenizer, tf_adapters.TextPacker(tokenizer, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            lambda model, tokenizer, packer: (model, tokenizer),
            r"^Expected as `packer` of `export_model\(model, packer, folder\)`",
        ),
        (
            lambda model, tokenizer, packer: (model, tokenizer, "exports/x"),
            r"TextPacker\(tokenizer, max_length=...\)`.*<WordPieceTokenizer",
        ),
        (
            lambda model, tokenizer, packer: (model, packer),
            "^Expected as `folder` .*Received: None",
        ),
        (
            lambda model, tokenizer, packer: ("runs/one", packer, "exports/x"),
            "^Expected as `model` .*Received: 'runs/one'",
        ),
        (
            lambda model, tokenizer, packer: (
                *(model, packer, "exports/x", ("a", "b", "c")),
            ),
            r"classification reads one or two text fields\. Received: .*'c'",
        ),
    ],
)
def test_arguments_that_are_other_things(parts, arguments, message):
    with pytest.raises(UserError, match=message):
        tf_adapters.export_model(*arguments(*parts))


def test_another_models_training_is_not_exported(parts, tmp_path):
    model, _, packer = parts
    other = tf_adapters.adapt(model.encoder_info, methods.BitFit(), model.head)
    bank = tf_adapters.load_bank([model], model.encoder_info)
    other.trained_variables().popitem()[1].assign_add([0.5])
    for export in (
        lambda: tf_adapters.export_model(model, packer, tmp_path / "x"),
        lambda: tf_adapters.export_onnx(model, packer, tmp_path / "x"),
        lambda: many_tasks.export_bank(bank, packer, [], tmp_path / "x"),
        lambda: onnx_bank.export_bank_onnx(bank, packer, [], tmp_path, None),
    ):
        with pytest.raises(UserError, match="no longer has the weights"):
            export()
    model.encoder_info.restore()
    assert not list(tmp_path.iterdir())


def test_a_file_is_made_of_a_model_in_float32(parts, tmp_path):
    _, _, packer = parts
    encoder = tiny.encoder(num_blocks=1, dtype="mixed_bfloat16")
    head = tf_adapters.heads.Classification(("no", "yes"))
    model = tf_adapters.adapt(encoder, methods.IA3(), head)
    for export in (tf_adapters.export_onnx, tf_adapters.export_litert):
        with pytest.raises(UserError, match="computes in bfloat16.*float32"):
            export(model, packer, tmp_path / "x")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ((), r"^`rows` need the names .* text_fields=\('review',\)\.$"),
        (("text",), "^Row 0 of `rows` has no `text`.* It has: review$"),
        (("review", "title"), "^Row 0 of `rows` has no `title`"),
    ],
)
def test_rows_need_the_names_of_their_texts(fields, message):
    with pytest.raises(UserError, match=message):
        check_texts.texts_of_rows([{"review": "a fine film"}], fields)


def test_a_name_need_not_be_in_a_list(parts, tmp_path):
    rows = [{"review": "a fine film"}]
    assert check_texts.texts_of_rows(rows, "review").fields == ("review",)
    model, _, packer = parts
    path = tf_adapters.export_model(model, packer, tmp_path / "x", "review")
    signature = tf.saved_model.load(str(path)).signatures["serving_default"]
    assert [*signature.structured_input_signature[1]] == ["review"]


def test_rows_with_names_and_no_rows_are_texts_to_check_on():
    rows = [{"review": "a fine film"}]
    texts = check_texts.texts_of_rows(rows, ["review"])
    assert texts == check_texts.CheckTexts(("review",), rows, rows)
    assert not check_texts.texts_of_rows([], []).rows
