"""Explanations of a model that reads one word, and of all heads."""

import numpy as np
import pytest
import scipy.special
import tensorflow as tf

from tests.explain import one_word
from tests.explain.one_word import MOVE
from tests.explain.one_word import SCALE
from tests.explain.one_word import STRENGTH
from tests.explain.one_word import score
from tests.text.models import CLASSES
from tests.text.models import LABELS
from tests.text.models import TEXTS
from tests.text.models import text_model
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.explain import scores
from tf_adapters.layers.context import Context
from tf_adapters.models import adapted_embeddings

pytestmark = pytest.mark.integration

TEXT = "a fine film"
WORDS = ("[CLS]", "a", "fine", "film", "[SEP]")
# Each word is one token in the vocabulary of the folder with random weights.
PLAIN = "the film, water"
NAN = np.nan


@pytest.fixture(name="explanation", scope="module")
def _explanation():
    return one_word.text_model().explain([TEXT])[0]


def _random(method="pfeiffer", seed=0, **options):
    """Returns a model whose adapter and head have random weights."""
    model = text_model(method, **options)
    generator = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        weight.assign(weight + generator.normal(0, 0.3, weight.shape))
    return model


def _log_odds(logits, index):
    return scipy.special.logit(scipy.special.softmax(logits)[index])


def test_the_score_and_the_words(explanation):
    assert explanation.words == WORDS
    assert explanation.answers == ("positive",)
    assert explanation.score_name == "log-odds"
    complete = explanation.variants[0]
    assert complete.answer["label"] == "positive"
    np.testing.assert_allclose(complete.scores, [score(5)], rtol=1e-5)


def test_the_word_that_is_read_decides(explanation):
    other = score(5) - score(4)  # One word fewer shares the attention.
    expected = [[NAN, other, score(5), other, NAN]]
    np.testing.assert_allclose(
        explanation.left_out, expected, rtol=1e-4, atol=1e-6
    )


def test_gradient_times_input_by_hand(explanation):
    """The score depends on "fine" and, through the norm, on the first token."""
    r = STRENGTH / 5
    slope = SCALE * r / (1 + r**2) ** 1.5 / np.sqrt(1 + MOVE**2)
    np.testing.assert_allclose(
        explanation.gradient, [[-slope, 0, slope, 0, 0]], rtol=1e-4, atol=1e-5
    )


def test_each_block_moves_words_by_its_adapter(explanation):
    shrunk = 1 / np.sqrt(1 + MOVE**2)
    # Orthogonal: the vector becomes shorter, and a part is added.
    distance = np.hypot(1 - shrunk, MOVE * shrunk)
    np.testing.assert_allclose(
        explanation.movements, [[0] * 5, [distance] * 5], rtol=1e-4, atol=1e-6
    )


def test_answers_without_adapters(explanation):
    scores = {v.name: float(v.scores[0]) for v in explanation.variants}
    alone = score(5, is_moved=False)
    assert scores == pytest.approx(
        {
            "complete": score(5),
            "without the adapter": alone,
            "without all blocks": alone,
            "without block 1": score(5),
            "without block 2": alone,
        },
        rel=1e-4,
    )


def test_another_class_is_explained_by_name():
    model = one_word.text_model()
    (one,) = model.explain([TEXT], label="negative")
    assert one.answers == ("negative",)
    np.testing.assert_allclose(one.left_out[0, 2], -score(5), rtol=1e-4)


def test_leaving_out_a_word_of_pieces_equals_a_shorter_text():
    model = _random()
    texts = ["the film a dull one", "the film a one"]
    (one,) = model.explain(texts[:1])
    assert "dull" in one.words
    before, after = model.predict(texts, verbose=0)
    index = LABELS.index(one.answers[0])
    expected = _log_odds(before, index) - _log_odds(after, index)
    found = one.left_out[0, one.words.index("dull")]
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_the_words_of_a_pair_keep_their_segments():
    model = _random(head=heads.Regression())
    (one,) = model.explain([("a film", "fine film")])
    before, after = model.predict(
        [("a film", "fine film"), ("a", "fine film")], verbose=0
    )[:, 0]
    assert one.score_name == "number"
    np.testing.assert_allclose(
        one.left_out[0, 2], before - after, rtol=1e-4, atol=1e-6
    )


def test_each_tag_is_explained():
    model = _random(head=heads.Tagging(("X", "Y", "Z")))
    words = ["a", "dull", "film"]
    (one,) = model.explain([words])
    tags = model.answer([words])[0]["tags"]
    assert one.answers == tuple(
        f"{word}: {tag}" for word, tag in zip(words, tags, strict=True)
    )
    assert np.isnan(np.diagonal(one.left_out[:, 1:])).all()
    # The tag of "film", of which the first of two tokens is read.
    (before,), (after,) = (
        model.predict([kept], verbose=0) for kept in (words, ["a", "film"])
    )
    index = "XYZ".index(tags[2])
    places = [
        len(found) - 1 - _num_tokens(model, "film") for found in (before, after)
    ]
    expected = _log_odds(before[places[0]], index)
    expected -= _log_odds(after[places[1]], index)
    np.testing.assert_allclose(
        one.left_out[2, 2], expected, rtol=1e-4, atol=1e-5
    )


def test_many_tags_are_explained_a_few_at_a_time(monkeypatch):
    model = _random(head=heads.Tagging(("X", "Y", "Z")))
    words, sizes, features_of = ["a", "dull", "film"], [], scores.features_of
    (together,) = model.explain([words])

    def counted(one, kept):
        sizes.append(len(kept))
        return features_of(one, kept)

    monkeypatch.setattr(scores, "_BATCH_SIZE", 2)
    monkeypatch.setattr(scores, "features_of", counted)
    (found,) = model.explain([words])
    assert max(sizes) == 2
    np.testing.assert_allclose(
        found.gradient, together.gradient, rtol=1e-4, atol=1e-5
    )


def _num_tokens(model, word):
    (tokens,) = model.preprocessor.packer.token_arrays([f" {word}"])
    return len(tokens)


def test_an_answer_in_a_text_is_explained():
    model = _random(head=heads.Span())
    (one,) = model.explain([("a film", "a fine film the dull one")])
    (answer,) = model.answer([("a film", "a fine film the dull one")])
    assert one.answers == (answer["answer"],)
    # The words of the answer's ends cannot be left out, nor special tokens.
    assert 4 <= np.isnan(one.left_out).sum() <= 5
    assert not np.isnan(one.left_out[0, 1])


def test_several_labels_are_explained():
    model = _random(head=heads.MultiLabel(LABELS, threshold=0.01))
    (one,) = model.explain([TEXT])
    assert one.answers == LABELS
    (logits,) = model.predict([TEXT], verbose=0)
    np.testing.assert_allclose(one.variants[0].scores, logits, rtol=1e-5)
    (one,) = model.explain([TEXT], label="positive")
    assert one.answers == ("positive",)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["lora", "prompt_tuning"])
def test_gradients_by_differences(method):
    """Making a word's vector longer changes the score by gradient times input.

    Prompt tuning inserts vectors into the text, which are no words.
    """
    model = _random(method, head=heads.Regression())
    (one,) = model.explain([PLAIN])
    adapter, features = model.adapter_model, model.preprocessor.packer([PLAIN])
    x, _ = adapted_embeddings.embed(
        adapter.encoder, features, Context(features["padding_mask"]), False
    )
    added = x.shape[1] - len(one.words)
    place = 2 + added  # "film"; vectors are inserted before the text.
    step = 1e-2

    def moved(sign):
        factors = 1 + sign * step * (np.arange(x.shape[1]) == place)
        vectors = x * factors[:, None].astype("float32")
        return float(adapter({**features, "hidden_state_0": vectors})[0, 0])

    expected = (moved(1) - moved(-1)) / (2 * step)
    assert abs(expected) > 1e-3
    np.testing.assert_allclose(one.gradient[0, 2], expected, rtol=1e-2)


def test_the_last_block_is_compared_with_itself_without_adapter():
    model = _random("lora")
    (one,) = model.explain([PLAIN])
    features = model.preprocessor.packer([PLAIN])
    outputs = []
    for blocks in ((), (1,)):
        with model.adapter_model.without(blocks):
            found = model.adapter_model.encode(features)
            outputs.append(np.asarray(found["sequence_output"])[0])
    with_adapter, plain = outputs
    distances = np.linalg.norm(with_adapter - plain, axis=-1)
    expected = distances / np.linalg.norm(plain, axis=-1)
    assert expected.min() > 1e-3
    np.testing.assert_allclose(one.movements[1], expected, rtol=1e-4)


def test_the_members_of_a_fusion_are_shown():
    members = [
        _random(seed=seed, adapter_name=name)
        for seed, name in enumerate(("first", "second"))
    ]
    encoder = members[0].encoder_info
    fusion = tf_adapters.fuse(
        encoder,
        methods.Fusion(),
        heads.Classification(LABELS),
        adapters=[member.adapter_model for member in members],
    )
    generator = np.random.default_rng(0)
    for weight in fusion.trainable_variables:
        if "query" in weight.path or "key" in weight.path:
            weight.assign(generator.normal(0, 0.1, weight.shape))
    model = members[0]
    fused = type(model).of_adapter(
        fusion, model.preprocessor.packer.tokenizer, max_length=16
    )
    (one,) = fused.explain([PLAIN])
    assert one.members == ("first", "second")
    features = fused.preprocessor.packer([PLAIN])
    probes = fusion.encode(features, return_probes=True)["probes"]
    assert list(one.member_weights) == [(0, "after_ffn"), (1, "after_ffn")]
    for (block, place), weights in one.member_weights.items():
        expected = np.asarray(probes[block][place]["fusion_weights"])[0]
        assert np.ptp(expected[:, 0]) > 1e-2
        np.testing.assert_allclose(weights, expected, rtol=1e-5)


def test_a_method_without_slots_has_no_movements():
    model = text_model("full")
    model.fit(TEXTS, CLASSES, epochs=1, verbose=0)
    (one,) = model.explain([TEXT])
    assert one.movements.shape == (0, 5)
    names = [variant.name for variant in one.variants]
    assert names == ["complete", "without the adapter"]


@pytest.mark.parametrize(
    ("options", "texts", "label", "message"),
    [
        (
            {"head": heads.Choice()},
            [("a film", ["fine", "dull"])],
            None,
            "Only answers of heads for classes",
        ),
        ({"head": heads.Regression()}, [TEXT], "x", "predicts no classes"),
        ({}, [TEXT], "neutral", "neutral"),
        (
            {"windows": 4, "max_length": 8},
            ["a fine film and a dull film"],
            None,
            "Explain a shorter text",
        ),
    ],
    ids=["choice", "label", "unknown", "windows"],
)
def test_what_cannot_be_explained_is_refused(options, texts, label, message):
    with pytest.raises(UserError, match=message):
        text_model(**options).explain(texts, label=label)


def test_a_dataset_is_refused():
    model = one_word.text_model()
    texts = tf.data.Dataset.from_tensor_slices([TEXT])
    with pytest.raises(UserError, match="a list of texts"):
        model.explain(texts)


def test_explaining_changes_nothing():
    model = _random()
    before = model.predict([TEXT], verbose=0)
    model.explain([TEXT])
    np.testing.assert_array_equal(before, model.predict([TEXT], verbose=0))
