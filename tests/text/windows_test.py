"""Tests text models that read long texts in windows."""

import numpy as np
import pytest

from tests.fixtures import huggingface_folders
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.data.examples import Examples
from tf_adapters.text import loading
from tf_adapters.text.batches import TextBatches
from tf_adapters.text.text_model import TextModel

FOLDER = str(huggingface_folders.folder("bert"))
LABELS = ("negative", "positive")
# Texts of one to four windows of eight tokens; words of one token.
TEXTS = [
    "a b c",
    "a b c d e f g h i j k l m n o p q r s t u v",
    "a b c d e f g h",
    "z y x w v u t s r q p o n",
]
CLASSES = ["positive", "negative", 1, 0]
SIZES = {"max_length": 8, "windows": 4}


def _model(**options):
    options = {"labels": LABELS, **SIZES, "method": "pfeiffer", **options}
    model = TextModel.from_preset(FOLDER, **options)
    # A few steps: a trace would take longer.
    model.compile(run_eagerly=True)
    return model


@pytest.fixture(name="model", scope="module")
def _trained():
    model = _model(learning_rate=1e-2)
    model.fit(TEXTS, CLASSES, epochs=2, verbose=0)
    return model


def _windows_of(text):
    """Returns a text's windows: six words each, starting four words apart."""
    words, starts = text.split(), [0]
    while starts[-1] + 6 < len(words) and len(starts) < 4:
        starts.append(starts[-1] + 4)
    return [" ".join(words[start : start + 6]) for start in starts]


def test_an_output_is_the_mean_of_separately_read_windows(model):
    assert [len(_windows_of(text)) for text in TEXTS] == [1, 4, 2, 3]
    outputs = model.predict(TEXTS, batch_size=2, verbose=0)
    vectors = model.encode(TEXTS)
    for place, text in enumerate(TEXTS):
        parts = _windows_of(text)
        alone = model.predict(parts, verbose=0)
        np.testing.assert_allclose(
            outputs[place], alone.mean(axis=0), atol=1e-5
        )
        np.testing.assert_allclose(
            vectors[place], model.encode(parts).mean(axis=0), atol=1e-5
        )
    assert np.ptp(outputs, axis=0).min() > 1e-3
    assert np.ptp(vectors, axis=0).max() > 1e-3


def test_the_graph_gives_what_eager_gives(model):
    expected = model.predict(TEXTS, batch_size=2, verbose=0)
    model.compile()
    try:
        received = model.predict(TEXTS, batch_size=2, verbose=0)
    finally:
        model.compile(run_eagerly=True)
    np.testing.assert_allclose(received, expected, atol=1e-5)


def test_a_short_text_has_the_output_of_a_model_that_cuts(model):
    cutting = _model(windows=1)
    for mine, theirs in zip(
        cutting.adapter_model.trained_variables().values(),
        model.adapter_model.trained_variables().values(),
        strict=True,
    ):
        mine.assign(theirs)
    received = cutting.predict(TEXTS, batch_size=1, verbose=0)
    expected = model.predict(TEXTS, batch_size=1, verbose=0)
    np.testing.assert_array_equal(received[0], expected[0])
    assert (np.abs(received - expected).max(axis=1) > 1e-4).tolist() == [
        False,
        True,
        True,
        True,
    ]


def test_a_loaded_adapter_reads_windows_too(model, tmp_path):
    expected = model.answer(TEXTS)
    model.save_adapter(tmp_path / "adapter")
    loaded = loading.load(tmp_path / "adapter")
    assert loaded.head.windows == 4 and loaded.preprocessor.max_length == 8
    assert loaded.answer(TEXTS) == expected


def test_training_and_evaluation_see_the_pooled_outputs():
    model = _model(method="full", learning_rate=1e-2)
    before = model.evaluate(TEXTS, CLASSES, verbose=0)
    logits = model.predict(TEXTS, verbose=0)
    targets = [1, 0, 1, 0]
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = -np.log(shares[np.arange(4), targets]).mean()
    assert before["loss"] == pytest.approx(expected, abs=1e-5)
    model.fit(TEXTS, CLASSES, epochs=20, verbose=0)
    after = model.evaluate(TEXTS, CLASSES, verbose=0)
    assert after["accuracy"] == 1.0 and after["loss"] < 0.5 * before["loss"]


@pytest.mark.parametrize(
    ("head", "options"),
    [
        (heads.Regression(pooling="max"), {}),
        (heads.MultiLabel(LABELS, windows=3), {"windows": None}),
    ],
)
def test_other_heads_on_one_output(head, options):
    model = _model(labels=None, head=head, **options)
    outputs = model.predict(TEXTS, verbose=0)
    pool = np.max if head.pooling == "max" else np.mean
    most = model.head.windows
    assert most == (4 if head.pooling == "max" else 3)
    parts = model.predict(_windows_of(TEXTS[1])[:most], verbose=0)
    np.testing.assert_allclose(outputs[1], pool(parts, axis=0), atol=1e-5)


def test_the_first_two_batches_show_keras_that_windows_vary():
    counts = [3, 3, 3, 3, 2, 1]
    rows = [[np.arange(5, dtype="int32")] * count for count in counts]
    segments = [[0 * window for window in row] for row in rows]
    encoded = Examples(rows, segments, pad_id=0, is_pooled=True)
    batches = TextBatches(encoded, 2)
    shapes = [batches[i][0]["token_ids"].shape for i in range(3)]
    # One window more in the second, which only fills up.
    assert shapes == [(2, 3, 5), (2, 4, 5), (2, 2, 5)]
    assert not batches[1][0]["padding_mask"][:, 3].any()
    fixed = TextBatches(Examples(rows, segments, pad_id=0), 2)
    assert {fixed[i][0]["token_ids"].shape for i in range(3)} == {(2, 3, 5)}


def test_batches_in_order_show_keras_that_lengths_vary():
    rows = [np.arange(n, dtype="int32") for n in (5, 5, 5, 3, 7, 2)]
    encoded = Examples(rows, None, pad_id=0)
    batches = TextBatches(encoded, 2, in_order=True)
    lengths = [batches[i][0]["token_ids"].shape[1] for i in range(3)]
    assert lengths == [7, 7, 7]
    lengths = TextBatches(encoded, 3, in_order=True)
    assert [one[0]["token_ids"].shape[1] for one in lengths] == [5, 7]


def test_what_cannot_be_is_one_sentence(model):
    with pytest.raises(UserError, match="Received: a head `tagging`"):
        _model(labels=None, head=heads.Tagging(LABELS))
    with pytest.raises(UserError, match="`windows` must be an integer of at"):
        _model(windows=0)
    with pytest.raises(UserError, match="two texts are read together"):
        model.predict([["a", "b"], ["c", "d"]], verbose=0)
    far = heads.Classification(LABELS, windows=2, window_stride=7)
    with pytest.raises(UserError, match="must be from 1 to 6"):
        _model(labels=None, head=far, windows=None).predict(TEXTS, verbose=0)
