"""Compares the choice head with NumPy: losses, texts and gradients."""

import json
import types

from keras import ops
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.heads import token_vectors
from tests.references import heads_numpy
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.models.adapter_model import adapt

RANDOM = np.random.default_rng(0)
COUNTS = (3, 1, 4, 2)
TARGETS = np.array([2, 0, 3, 0], "int32")
HEAD = heads.Choice(dropout_rate=0.0)
WIDTH, TOKENS = 6, 5


def _layer():
    layer = HEAD.make_layer()
    layer.build((None, None, WIDTH))
    tiny.randomize(layer.weights, scale=1.0)
    return layer


def _outputs(counts=COUNTS):
    """Returns encoder outputs of all choices, with noise for missing ones."""
    most = max(counts)
    mask = np.zeros((len(counts), most, TOKENS), "int32")
    for row, count in enumerate(counts):
        mask[row, :count, : 2 + row] = 1
    sequences = RANDOM.normal(size=(len(counts) * most, TOKENS, WIDTH))
    return {
        "sequence_output": sequences.astype("float32"),
        "first_token_output": sequences.astype("float32")[:, 0],
        "padding_mask": mask,
    }


def test_scores_and_losses_are_those_of_each_question_alone():
    layer, outputs = _layer(), _outputs()
    scores = np.asarray(layer(outputs))
    losses = np.asarray(HEAD.loss(TARGETS, scores))
    vectors = outputs["sequence_output"][:, 0].reshape(4, 4, WIDTH)
    kernel, bias = (w.astype("float64") for w in tiny.values(layer.weights))
    for row, count in enumerate(COUNTS):
        expected, loss = heads_numpy.choice(
            vectors[row, :count], kernel, bias, TARGETS[row]
        )
        np.testing.assert_allclose(scores[row, :count], expected, atol=1e-5)
        assert (scores[row, count:] == -1e9).all()
        np.testing.assert_allclose(losses[row], loss, rtol=1e-5, atol=1e-6)
    assert losses[1] == 0 and losses.max() > 0.5


def test_a_hidden_layer_is_dense_and_its_activation():
    head = heads.Choice(hidden_layer="relu")
    layer, outputs = token_vectors.layer(head, WIDTH), _outputs((2, 2))
    kernel, bias, hidden_kernel, hidden_bias = tiny.values(layer.weights)
    x = outputs["first_token_output"]
    hidden = np.maximum(x @ hidden_kernel + hidden_bias, 0)
    expected = (hidden @ kernel + bias).reshape(2, 2)
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(layer(outputs), expected, atol=1e-5)


def test_gradients_are_probabilities_minus_one_for_the_right_choice():
    layer, outputs = _layer(), _outputs()
    with tf.GradientTape() as tape:
        loss = ops.sum(HEAD.loss(TARGETS, layer(outputs)))
    variables = [weight.value for weight in layer.weights]
    kernel_gradient, _ = tape.gradient(loss, variables)
    vectors = outputs["sequence_output"][:, 0].reshape(4, 4, WIDTH)
    kernel = tiny.values(layer.weights)[0]
    expected = np.zeros(WIDTH)
    for row, count in enumerate(COUNTS):
        rows = vectors[row, :count]
        error = np.exp(heads_numpy.log_softmax(rows @ kernel[:, 0]))
        error[TARGETS[row]] -= 1
        expected += error @ rows
    assert np.abs(expected).max() > 0.3
    np.testing.assert_allclose(
        np.asarray(kernel_gradient)[:, 0], expected, atol=1e-5
    )


def test_a_model_scores_a_question_as_if_it_were_alone():
    """Missing choices, and longer ones of other questions, have no effect."""
    encoder = tiny.encoder()
    model = adapt(encoder, methods.Houlsby(units=4), HEAD)
    tiny.randomize(model.trained_variables().values())
    flat = tiny.batch(encoder, size=6, tokens=7)
    features = {k: v.reshape(2, 3, 7) for k, v in flat.items()}
    features["padding_mask"][1, 2] = 0
    outputs = np.asarray(model(features))
    alone = {k: v[1:, :2, :6] for k, v in features.items()}
    assert features["padding_mask"][1, :2].sum(-1).max() <= 6
    np.testing.assert_allclose(model(alone)[0], outputs[1, :2], atol=1e-5)
    assert outputs[1, 2] == -1e9 and np.ptp(outputs[0]) > 1e-2


def test_the_encoder_alone_reads_choices_as_sequences():
    encoder = tiny.encoder()
    model = adapt(encoder, methods.Houlsby(units=4), HEAD)
    flat = tiny.batch(encoder, size=6, tokens=7)
    outputs = model.encode({k: v.reshape(2, 3, 7) for k, v in flat.items()})
    np.testing.assert_allclose(
        outputs["sequence_output"], model.encode(flat)["sequence_output"]
    )


class _Words:
    """A packer whose tokens are the lengths of words."""

    special_tokens = types.SimpleNamespace(pad=0)

    def tokenize_rows(self, first, second):
        ids = [
            np.array([len(w) for w in f"{a} | {b}".split()], "int32")
            for a, b in zip(first, second, strict=True)
        ]
        return ids, [0 * row for row in ids]


ROWS = [
    {"q": "why so", "choices": ["a", "bb bb"], "label": 1},
    {"q": "who", "choices": ["a", "bb", "ccc"], "label": 0},
]


def test_each_choice_becomes_a_sequence_of_its_question():
    encoded = HEAD.encode(ROWS, ("q", "choices"), _Words())
    lists = [[ids.tolist() for ids in row] for row in encoded.token_ids]
    assert lists == [
        [[3, 2, 1, 1], [3, 2, 1, 2, 2]],
        [[3, 1, 1], [3, 1, 2], [3, 1, 3]],
    ]
    assert [len(row) for row in encoded.segment_ids] == [2, 3]
    np.testing.assert_array_equal(encoded.targets, [1, 0])
    unlabeled = HEAD.encode(ROWS, ("q", "choices"), _Words(), labeled=False)
    assert unlabeled.targets is None


def test_several_texts_of_a_question_are_joined():
    rows = [{"c": "it rains.", "q": "why?", "choices": ["x"], "label": 0}]
    encoded = HEAD.encode(rows, ("c", "q", "choices"), _Words())
    assert encoded.token_ids[0][0].tolist() == [2, 6, 4, 1, 1]


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        ("The _ is big.", ("The", "cup is big.")),
        ("_ won", ("", "cup won")),
        ("no blank", ("no blank", "cup")),
        ("a _ and _ b", ("a", "cup and _ b")),
    ],
)
def test_a_choice_fills_the_blank(question, texts):
    assert heads.Choice(blank="_").texts(question, "cup") == texts


def test_decoding_leaves_out_what_is_no_choice():
    outputs = [np.array([1.0, 3.0, -1e9]), np.array([0.5, -0.5, 0.0])]
    source = HEAD.encode(ROWS, ("q", "choices"), _Words()).source
    first, second = json.loads(json.dumps(HEAD.decode(outputs, source)))
    assert (first["label"], first["choice"]) == (1, "bb bb")
    np.testing.assert_allclose(
        first["probabilities"], [0.119203, 0.880797], atol=1e-6
    )
    assert second["choice"] == "a" and len(second["probabilities"]) == 3
    assert HEAD.evaluate(("accuracy",), outputs, np.array([1, 1])) == {
        "accuracy": 0.5
    }


@pytest.mark.parametrize("label", [None, -1, 2, "a", 1.0])
def test_a_row_without_a_place_is_named(label):
    rows = [{"choices": ["a", "b"], "label": label}]
    with pytest.raises(ValueError, match="Row 0 .*from 0 to 1"):
        HEAD.targets(rows)


def test_inputs_without_choices_are_refused():
    with pytest.raises(ValueError, match=r"\(batch, choices, tokens\)"):
        _layer()({**_outputs(), "padding_mask": np.ones((4, 5), "int32")})


def test_config_round_trip_through_json():
    head = heads.Choice(blank="_", reads="pooled_output")
    config = json.loads(json.dumps(heads.to_config(head)))
    assert heads.from_config(config) == head != HEAD
