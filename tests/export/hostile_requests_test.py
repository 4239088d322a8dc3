"""Tests that malformed requests give an error, and no crash or wrong answer."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from tests.export import conftest
import tf_adapters
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.export import choice_signatures
from tf_adapters.export import saved_model
from tf_adapters.export import signatures

pytestmark = pytest.mark.integration

HEADS = {
    "classification": heads.Classification(("no", "yes")),
    "choice": heads.Choice(),
    "tagging": heads.Tagging(("A", "B", "C")),
    "span": heads.Span(),
    "sentence_vector": heads.SentenceVector(),
    "masked_lm": None,
}


def _model(head):
    encoder, _ = tf_adapters.load_encoder(str(conftest.ENCODERS / "bert"))
    head = head or heads.MaskedLM.for_encoder(encoder)
    return tf_adapters.adapt(encoder, tf_adapters.methods.HeadOnly(), head)


@functools.cache
def _token_function(kind):
    model = _model(HEADS[kind])
    module = signatures.signatures_of_head(model.head)
    return module.token_function(model, conftest.make_packer("bert"))


def _features(kind="classification", rows=2, tokens=5):
    """Returns a valid request with mask tokens and segments of both texts."""
    shape = (rows, 3, tokens) if kind == "choice" else (rows, tokens)
    mask_id = conftest.make_packer("bert").mask_id
    half = np.arange(tokens) > tokens // 2
    return {
        "token_ids": np.full(shape, mask_id, "int32"),
        "padding_mask": np.ones(shape, "int32"),
        "segment_ids": np.broadcast_to(half, shape).astype("int32"),
    }


def _assert_refused(function, request, message):
    tensors = {name: tf.convert_to_tensor(x) for name, x in request.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match=message):
        function(**tensors)


@pytest.mark.parametrize(
    ("first", "second"), [(3, 2), (2, 3), (1, 3), (3, 1), (2, 0), (0, 2)]
)
def test_pairs_have_as_many_second_texts_as_first_ones(
    pair_classifier, first, second
):
    _assert_refused(
        pair_classifier.loaded.signatures["serving_default"],
        {
            "sentence1": tf.fill([first], "a film"),
            "sentence2": tf.fill([second], "a plot"),
        },
        "same number of rows in `sentence1`, `sentence2`",
    )


# Replacements for a value of a request, and the expected message.
VALUES = [
    ("token_ids", -1, "`token_ids` from 0 to 99"),
    ("token_ids", 100, "`token_ids` from 0 to 99"),
    ("padding_mask", 2, "`padding_mask` from 0 to 1"),
    ("padding_mask", -1, "`padding_mask` from 0 to 1"),
    ("segment_ids", 2, "`segment_ids` from 0 to 1"),
    ("segment_ids", -1, "`segment_ids` from 0 to 1"),
]


@pytest.mark.parametrize(("name", "value", "message"), VALUES)
def test_a_saved_model_refuses_numbers_out_of_range(
    pair_classifier, name, value, message
):
    request = _features()
    request[name][1, 3] = value
    function = pair_classifier.loaded.signatures["token_ids"]
    _assert_refused(function, request, message)


@pytest.mark.parametrize("name", ["token_ids", "padding_mask", "segment_ids"])
@pytest.mark.parametrize(
    ("rows", "tokens"), [(2, 6), (2, 4), (2, 1), (1, 5), (3, 5), (0, 5)]
)
def test_a_saved_model_refuses_inputs_of_different_shapes(
    pair_classifier, name, rows, tokens
):
    request = _features()
    request[name] = _features(rows=rows, tokens=tokens)[name]
    function = pair_classifier.loaded.signatures["token_ids"]
    _assert_refused(function, request, "Expected the same shape for")


@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize(
    ("tokens", "message"),
    [(33, "from 1 to 32 tokens, padding included"), (0, "from 1 to 32 tokens")],
)
def test_every_head_refuses_lengths_without_a_position(kind, tokens, message):
    request = _features(kind, tokens=tokens)
    _assert_refused(_token_function(kind), request, message)


@pytest.mark.parametrize("kind", HEADS)
def test_every_head_refuses_a_mask_of_another_shape(kind):
    request = _features(kind)
    request["padding_mask"] = request["padding_mask"][:1]
    message = "Expected the same shape for"
    _assert_refused(_token_function(kind), request, message)


@pytest.mark.parametrize("kind", HEADS)
def test_every_head_refuses_negative_ids(kind):
    request = _features(kind)
    request["token_ids"][-1, ..., -1] = -1
    _assert_refused(_token_function(kind), request, "from 0 to 99")


@pytest.mark.parametrize("kind", HEADS)
def test_every_head_refuses_a_dimension_too_many(kind):
    request = {name: x[None] for name, x in _features(kind).items()}
    message = "not compatible with expected shape"
    _assert_refused(_token_function(kind), request, message)


def test_texts_in_rows_of_a_matrix_are_refused(byte_pair_classifier):
    _assert_refused(
        byte_pair_classifier.loaded.signatures["serving_default"],
        {"sentence": [["a film", "a plot"]]},
        "not compatible with expected shape",
    )


@pytest.mark.parametrize("kind", HEADS)
def test_every_head_answers_an_empty_batch_with_no_rows(kind):
    request = {k: tf.constant(v) for k, v in _features(kind, rows=0).items()}
    answer = _token_function(kind)(**request)
    assert {value.shape[0] for value in answer.values()} == {0}


def test_no_texts_have_no_answers(pair_classifier):
    none = tf.zeros([0], tf.string)
    function = pair_classifier.loaded.signatures["serving_default"]
    answer = function(sentence1=none, sentence2=none)
    assert answer["probabilities"].shape == (0, 2)


@functools.cache
def _choice_function():
    packer = conftest.make_packer("bert")
    fields = ("question", "choices")
    return choice_signatures.text_function(
        _model(heads.Choice()), packer, fields
    )


def test_questions_have_choices_each():
    choices = [["yes", "no"]] * 2
    request = {"question": ["a", "b", "c"], "choices": choices}
    message = "same number of rows in `question`, `choices`"
    _assert_refused(_choice_function(), request, message)


def test_the_likeliest_of_no_choices_is_refused():
    choices = tf.zeros([2, 0], tf.string)
    request = {"question": ["a", "b"], "choices": choices}
    message = "Expected at least one choice"
    _assert_refused(_choice_function(), request, message)


def test_texts_longer_than_the_encoder_reads_are_refused_at_export(
    pair_classifier, tmp_path
):
    packer = tf_adapters.TextPacker(pair_classifier.packer.tokenizer, 33)
    with pytest.raises(UserError, match="max_length=33.* positions for 32"):
        saved_model.export_model(
            pair_classifier.model,
            packer,
            tmp_path / "long",
            pair_classifier.task.text_fields,
        )
    assert not list(tmp_path.iterdir())
