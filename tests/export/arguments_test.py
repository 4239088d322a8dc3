"""Tests the errors of `export_model` for wrong arguments."""

import pytest
import tensorflow as tf

from tests import commands
from tests import tiny
import tf_adapters
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.export import check_texts


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
