"""Compares tagging with NumPy, and tests that no word is lost."""

import dataclasses
import json

from keras import ops
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.heads import token_vectors
from tests.references import heads_numpy
from tf_adapters import heads
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens.special_tokens import SpecialTokens
from tf_adapters.layers.stateless_seeds import StatelessSeeds

LABELS = ("O", "B-X", "I-X", "B-Y")
HEAD = heads.Tagging(LABELS, dropout_rate=0.0)
RANDOM = np.random.default_rng(0)
WIDTH, TOKENS = 6, 7
MASK = (np.arange(TOKENS) < np.array([[7], [4], [2]])).astype("int32")
TARGETS = np.full((3, TOKENS), IGNORED, "int32")
TARGETS[0, [1, 2, 5]] = [0, 3, 2]
TARGETS[1, [1]] = [1]


def _layer():
    return token_vectors.layer(HEAD, WIDTH)


def _outputs():
    return token_vectors.outputs(RANDOM, MASK, WIDTH)


def test_loss_sums_over_the_tokens_that_have_a_target():
    layer, outputs = _layer(), _outputs()
    losses = HEAD.loss(TARGETS, layer(outputs))
    weights = [w.astype("float64") for w in tiny.values(layer.weights)]
    expected = [
        heads_numpy.tagging(vectors, *weights, targets)
        for vectors, targets in zip(
            outputs["sequence_output"], TARGETS, strict=True
        )
    ]
    assert expected[0] > 2 and expected[2] == 0
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", [heads.Tagging(LABELS), heads.Span()])
def test_a_hidden_layer_is_dense_and_its_activation(kind):
    head = dataclasses.replace(kind, hidden_layer="tanh")
    layer, outputs = token_vectors.layer(head, WIDTH), _outputs()
    kernel, bias, hidden_kernel, hidden_bias = tiny.values(layer.weights)
    x = outputs["sequence_output"]
    expected = np.tanh(x @ hidden_kernel + hidden_bias) @ kernel + bias
    there = MASK == 1
    np.testing.assert_allclose(
        np.asarray(layer(outputs))[there], expected[there], atol=1e-5
    )
    assert hidden_kernel.shape == (WIDTH, WIDTH)
    # The dropout before the hidden layer has a rate of its own.
    dropped = dataclasses.replace(
        head, dropout_rate=0.0, hidden_dropout_rate=0.5
    )
    layer = token_vectors.layer(dropped, WIDTH)
    outputs["sequence_output"] = 0 * x + 1
    in_training = np.asarray(layer(outputs, seeds=StatelessSeeds([1, 2])))
    assert np.ptp(in_training[there], axis=0).max() > 0.1


@pytest.mark.parametrize("kind", [heads.Tagging, heads.Span, heads.Choice])
def test_an_unknown_hidden_layer_is_refused(kind):
    options = {"labels": LABELS} if kind is heads.Tagging else {}
    with pytest.raises(ValueError, match="hidden_layer.*tanh"):
        kind(hidden_layer="mish", **options)


def test_gradients_by_differences():
    layer, outputs = _layer(), _outputs()
    with tf.GradientTape() as tape:
        loss = ops.sum(HEAD.loss(TARGETS, layer(outputs)))
    gradient = np.asarray(tape.gradient(loss, layer.kernel.value))
    kernel, bias = (w.astype("float64") for w in tiny.values(layer.weights))

    def loss_of(kernel):
        return sum(
            heads_numpy.tagging(vectors, kernel, bias, targets)
            for vectors, targets in zip(
                outputs["sequence_output"], TARGETS, strict=True
            )
        )

    for place in ((0, 0), (3, 2), (5, 3)):
        step = np.zeros_like(kernel)
        step[place] = 1e-5
        expected = (loss_of(kernel + step) - loss_of(kernel - step)) / 2e-5
        assert abs(expected) > 1e-3
        np.testing.assert_allclose(gradient[place], expected, rtol=1e-3)


class _Packer:
    """A word has a token for each letter; each token identifies its word."""

    special_tokens = SpecialTokens(
        start=1, separators=(2,), end=2, pad=0, second_segment=1
    )

    class tokenizer:  # noqa: N801
        unk_token_id = 9

    def __init__(self, max_length):
        self.max_length = max_length

    def token_arrays(self, texts):
        return [
            np.array([ord(letter) for letter in text[1:]], "int32")
            for text in texts
        ]


def _sentences(count=40):
    """Returns sentences of words with 0 to 9 letters."""
    # A generator of its own: a batch may have no label at all with another.
    random, rows = np.random.default_rng(0), []
    for _ in range(count):
        letters = random.integers(ord("a"), ord("z"), random.integers(1, 30))
        tokens = [chr(c) * int(random.integers(0, 10)) for c in letters]
        labels = random.integers(-1, len(LABELS), len(tokens)).tolist()
        rows.append({"tokens": tokens, "label": labels})
    return rows


@pytest.mark.parametrize("max_length", [3, 5, 8, 128])
def test_a_long_sentence_loses_no_word(max_length):
    rows, packer = _sentences(), _Packer(max_length)
    encoded = HEAD.encode(rows, ("tokens",), packer)
    assert max(len(ids) for ids in encoded.token_ids) <= max_length
    assert all(ids[0] == 1 and ids[-1] == 2 for ids in encoded.token_ids)
    # An output that identifies the token at its position.
    outputs = [
        np.eye(len(LABELS))[np.pad(ids, (0, 3)) % len(LABELS)]
        for ids in encoded.token_ids
    ]
    expected = [
        [ord((word or "\x09")[0]) % len(LABELS) for word in row["tokens"]]
        for row in rows
    ]
    assert HEAD.predictions(outputs, encoded.source) == expected
    # Each label occurs once, at its word's first token.
    known = [label for row in rows for label in row["label"] if label >= 0]
    targets = np.concatenate(encoded.targets)
    assert targets[targets != IGNORED].tolist() == known
    assert encoded.counts.sum() == len(known)


def test_words_stay_together_where_they_can():
    rows = [{"tokens": ["aaa", "bb", "c", "dddd", "e"], "label": [0] * 5}]
    encoded = HEAD.encode(rows, ("tokens",), _Packer(8))
    texts = ["".join(map(chr, ids[1:-1].tolist())) for ids in encoded.token_ids]
    assert texts == ["aaabbc", "dddde"]
    assert [row.tolist() for row in encoded.targets] == [
        [-1, 0, -1, -1, 0, -1, 0, -1],
        [-1, 0, -1, -1, -1, 0, -1],
    ]


@pytest.mark.parametrize("num_shards", [1, 2, 3])
def test_a_batch_is_a_mean_over_its_words(num_shards):
    """This holds for any number of replicas, and in a smaller last batch."""
    encoded = HEAD.encode(_sentences(), ("tokens",), _Packer(16))
    examples = pipeline.to_tensors(encoded)
    size = 7 if len(examples) % 7 else 8
    plan = batch_plan.plan_training(examples.lengths, size, 0, 0, "grouped")
    assert len({len(batch.indices) for batch in plan}) == 2
    data = iter(pipeline.dataset(examples, plan, num_shards, range(num_shards)))
    for batch in plan:
        words = total = 0
        for part in (next(data) for _ in range(num_shards)):
            targets = part["targets"].numpy()
            assert targets.shape == part["token_ids"].shape
            of_each = (targets != IGNORED).sum(axis=1)
            words += of_each.sum()
            total += (of_each * part["weights"].numpy()).sum()
        assert words == examples.count(batch.indices)
        assert abs(total - 1) < 1e-5


def test_a_batch_without_any_label_has_a_loss_of_zero():
    rows = [{"tokens": ["a"], "label": [IGNORED]}]
    encoded = HEAD.encode(rows, ("tokens",), _Packer(8))
    examples = pipeline.to_tensors(encoded)
    plan = batch_plan.plan_evaluation(examples.lengths, 1)
    (features,) = pipeline.dataset(examples, plan)
    losses = HEAD.loss(
        features["targets"].numpy(), np.zeros((1, 3, 4), "float32")
    )
    assert float(losses[0] * features["weights"][0]) == 0


def test_metrics_are_over_labeled_words_of_whole_sentences():
    rows = [
        {"tokens": ["a", "b", "c"], "label": [1, 2, IGNORED]},
        {"tokens": ["d", "e"], "label": [3, 0]},
    ]
    encoded = HEAD.encode(rows, ("tokens",), _Packer(4))
    assert len(encoded.token_ids) == 3  # The first in two windows.
    right = [[1, 2], [1], [3, 1]]
    outputs = [np.eye(4)[[0, *ids, 0]] for ids in right]
    values = HEAD.evaluate(
        ("accuracy", "entity_f1"), outputs, None, encoded.source
    )
    assert values["accuracy"] == 3 / 4
    # Gold: X over a b, Y over d. Predicted: X over a b, Y over d, X over e.
    np.testing.assert_allclose(values["entity_f1"], 2 * (2 / 3) / (5 / 3))
    assert json.loads(json.dumps(HEAD.decode(outputs, encoded.source))) == [
        {"tags": ["B-X", "I-X", "B-X"]},
        {"tags": ["B-Y", "B-X"]},
    ]


def test_no_entity_reaches_over_a_word_without_a_label():
    rows = [{"tokens": ["a", "b", "c"], "label": [1, IGNORED, 2]}]
    encoded = HEAD.encode(rows, ("tokens",), _Packer(8))
    for middle in range(4):
        outputs = [np.eye(4)[[0, 1, middle, 2, 0]]]
        values = HEAD.evaluate(
            ("accuracy", "entity_f1"), outputs, None, encoded.source
        )
        assert values == {"accuracy": 1, "entity_f1": 1}
    outputs = [np.eye(4)[[0, 1, 2, 0, 0]]]
    values = HEAD.evaluate(("entity_f1",), outputs, None, encoded.source)
    # One of the two pieces was found, and nothing else.
    np.testing.assert_allclose(values["entity_f1"], 2 / 3)


def test_config_round_trip_through_json():
    config = json.loads(json.dumps(heads.to_config(HEAD)))
    assert config == {
        "name": "tagging",
        "labels": list(LABELS),
        "dropout_rate": 0.0,
        "hidden_layer": "none",
        "hidden_dropout_rate": 0.0,
    }
    assert heads.from_config(config) == HEAD


def test_a_label_for_each_word_is_required():
    rows = [{"tokens": ["aa", "bb", "cc"], "label": [1]}]
    with pytest.raises(ValueError, match="has 3 words and 1 labels"):
        HEAD.encode(rows, ("tokens",), _Packer(8))


def test_one_label_is_refused():
    with pytest.raises(ValueError, match="two classes or more.*only"):
        heads.Tagging(("only",))
