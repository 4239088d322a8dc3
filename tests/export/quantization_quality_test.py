"""What a quantized file changes is measured, and too much is refused."""

import numpy as np
import pytest

from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.export import precisions
from tf_adapters.export import quantization_quality

_LABELS = ("a", "b", "c")
_MASK = np.ones((4, 2), "int32")


def _compare(head, expected, found):
    name = "logits" if head.gives_logits else "outputs"
    batch = {"padding_mask": _MASK[: len(expected)]}
    return quantization_quality.compare(
        head, lambda _: {name: expected}, lambda _: {name: found}, [batch]
    )


def test_equal_classes_and_explained_variance():
    expected = np.eye(4, 3, dtype="float32")
    found = expected.copy()
    found[0] = (0.0, 1.0, 0.0)
    quality = _compare(heads.Classification(_LABELS), expected, found)
    assert quality.rows == 4
    assert quality.equal_predictions == 0.75
    total = np.sum((expected - expected.mean(axis=0)) ** 2)
    assert quality.explained_variance == pytest.approx(1 - 2 / total)
    with pytest.raises(AdapterError, match="75.0% of 4 predictions.*90%"):
        quality.check("int8")


def test_a_set_of_classes_is_equal_as_a_whole():
    expected = np.array([[1.0, -1.0, 1.0], [1.0, -1.0, -1.0]])
    found = expected * [[1, 1, -1], [2, 2, 2]]
    quality = _compare(heads.MultiLabel(_LABELS), expected, found)
    assert quality.equal_predictions == 0.5


def test_tags_are_compared_for_each_token_that_is_there():
    head, expected = heads.Tagging(_LABELS), np.zeros((2, 2, 3), "float32")
    expected[..., 1] = 1
    found = expected.copy()
    found[1, 1, 2] = 9  # Padding.
    found[0, 1, 2] = 9
    batch = {"padding_mask": np.array([[1, 1], [1, 0]])}
    quality = quantization_quality.compare(
        head,
        lambda _: {"logits": expected},
        lambda _: {"logits": found},
        [batch],
    )
    assert quality.rows == 3
    assert quality.equal_predictions == pytest.approx(2 / 3)


def test_missing_choices_do_not_count():
    expected = np.array([[1.0, 2.0, -1e9], [3.0, 1.0, 2.0]])
    quality = _compare(heads.Choice(), expected, expected + [0, 0, 0.1])
    assert quality.equal_predictions == 1
    assert 0.99 < quality.explained_variance < 1


def test_numbers_are_judged_by_their_variance():
    expected = np.arange(4.0)[:, None]
    close = _compare(heads.Regression(), expected, expected + 0.1)
    assert close.equal_predictions is None
    close.check("int8")
    far = _compare(heads.Regression(), expected, expected[::-1])
    with pytest.raises(AdapterError, match="variance on 4 rows.*80%"):
        far.check("int8_static")


def test_an_unknown_precision_is_refused():
    with pytest.raises(ConfigError, match="float32, int8, int8_static"):
        precisions.check("int4", "onnx")


@pytest.mark.parametrize(
    ("found", "share"), [(3.0, 1.0), (2.7, 0.99), (1.5, 0.75)]
)
def test_equal_outputs_are_compared_by_their_squares(found, share):
    expected = np.full((1, 1), 3.0, "float32")
    quality = _compare(heads.Regression(), expected, np.full((1, 1), found))
    assert quality.explained_variance == pytest.approx(share)
