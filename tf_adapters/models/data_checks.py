"""Checks the data passed to Keras's `fit`, `evaluate` and `predict`.

Arrays are checked completely. For a `tf.data` set, only dtypes and shapes are
known. A generator cannot be checked.
"""

from __future__ import annotations

from collections.abc import Sequence
import math
import numbers
import re
import sys
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.models.encoder_checks import is_text

if TYPE_CHECKING:
    from tf_adapters.heads.head import Head
    from tf_adapters.models.features_model import FeaturesModel

# TensorFlow's error for an invalid label, on a CPU. On a GPU, such a label
# makes the loss NaN instead.
_LABEL_OUTSIDE = re.compile(
    r"label value of (\S+) which is outside the valid range of \[(\d+), (\d+)\)"
)

_NAN_AS_INTEGER = (str(-(2**31)), str(-(2**63)))
# Keras's error for NumPy arrays of strings.
_TEXTS = re.compile("^Invalid dtype: (str|bytes|object)")


def check_data(model: FeaturesModel, x: Any) -> None:
    """Raises a `UserError` unless `x` has token features and at least one row.

    Args:
        model: `FeaturesModel`.
        x: Input of `predict`: dict of arrays, `tf.data` set, or generator.
    """
    spec = _element_spec(x)
    if spec is not None:
        model.check_features(spec[0] if isinstance(spec, tuple) else spec)
        rows = int(x.cardinality())
    elif isinstance(x, dict | Sequence) or hasattr(x, "__array__"):
        model.check_features(x)  # Raises an error unless it is a dict.
        features: Any = x
        rows = len(next(iter(features.values())))
    else:
        return
    if rows == 0:
        raise UserError(
            "There are no rows: `x` is empty. Give at least one example."
        )


def checked_labels(model: FeaturesModel, x: Any, y: Any) -> Any:
    """Checks the labels for `fit` and returns them.

    A list, a table or an array of objects becomes a NumPy array of numbers. The
    arrays of a model with several outputs stay in their list.

    Args:
        model: `FeaturesModel`.
        x: See `check_data`.
        y: Labels, or `None` if `x` already contains them.

    Raises:
        UserError: If there are no features, rows or labels, or if a label is
            not a number or not valid for the head.
    """
    check_data(model, x)
    if model.head is not None or not _are_outputs(x, y):
        y = _as_array(y)
    labels = targets_of(x, y)
    if labels is None:
        if y is None and _loss(model) is not None:
            _check_has_labels(x)
        return y
    if is_text(labels.dtype):
        names = ", ".join(getattr(model.head, "labels", ())) or "the classes"
        raise UserError(
            f"Labels must be numbers. Received: texts, {shown(y)}. A class id "
            f"is the position of its name in the head's `labels` ({names}): "
            "`np.array([head.labels.index(name) for name in names])`."
        )
    if y is not None:
        _check_values(model, ops.convert_to_numpy(y))
    return y


def _check_has_labels(x: Any) -> None:
    """Raises a `UserError` if `x` is features alone, without labels."""
    if isinstance(x, dict):
        raise UserError(
            "There are no labels. Give them after the features: "
            "`model.fit(features, labels)`."
        )
    spec = _element_spec(x)
    if isinstance(spec, dict) or (isinstance(spec, tuple) and len(spec) == 1):
        raise UserError(
            "The tf.data set has no labels. Make it of features and labels: "
            "`tf.data.Dataset.from_tensor_slices((features, labels))`."
        )


def _are_outputs(x: Any, y: Any) -> bool:
    """Returns whether `y` is a list of arrays, one for each output."""
    if not (isinstance(x, dict) and isinstance(y, list | tuple) and len(y)):
        return False
    rows = len(next(iter(x.values())))
    return all(
        getattr(labels, "ndim", 0) > 0 and len(labels) == rows for labels in y
    )


def _as_array(labels: Any) -> Any:
    """Returns labels in a list, a table or objects as an array of numbers."""
    is_objects = isinstance(labels, np.ndarray) and labels.dtype == object
    is_list = isinstance(labels, list | tuple) or hasattr(labels, "to_numpy")
    if not (is_list or is_objects):
        return labels
    try:
        array = np.asarray(labels)
        # As objects, integers would be taken for texts.
        if array.dtype == object:
            array = np.asarray(array.tolist())
    except ValueError as error:
        raise UserError(
            "Labels must be an array, with as many numbers in each row. Pad "
            f"rows of several lengths with -1. Received: {shown(labels)}"
        ) from error
    if array.dtype == object and not any(
        isinstance(value, str) for value in array.flat
    ):
        _check_numbers(array)
    return array


def _check_numbers(labels: np.ndarray) -> None:
    for row, values in enumerate(np.atleast_1d(labels)):
        for value in np.ravel(values):
            if not isinstance(value, numbers.Real):
                raise UserError(
                    f"Labels must be numbers. Received: {value!r:.100} in row "
                    f"{row} (the first is 0). Leave out rows without a label."
                )


def _check_values(model: FeaturesModel, labels: np.ndarray) -> None:
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        place = int(np.argwhere(~np.isfinite(labels))[0][0])
        raise UserError(
            f"Labels must be finite numbers. Received: {labels[place]} in row "
            f"{place} (the first is 0). Leave out rows without a label."
        )
    if model.head is not None:
        model.head.check_labels(labels, _ignored_class(model))


def _ignored_class(model: FeaturesModel) -> int | None:
    """Returns the class id that the model's loss ignores, or `None`."""
    loss = _loss(model)
    if isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
        return loss.ignore_class
    return None


def _loss(model: FeaturesModel) -> Any:
    """Returns the loss that was given to `compile`, or `None`.

    `model.loss` may be a method, so the attribute is looked up in `vars`.
    """
    return vars(model).get("loss")


def targets_of(x: Any, y: Any) -> Any:
    """Returns the labels. For a `tf.data` set, returns their `TensorSpec`.

    Returns `None` if the labels are unknown, or if they are in a dict, as a
    custom loss may require, or in a list, as for several outputs.

    Args:
        x: See `check_data`.
        y: Labels, or `None` if `x` is a `tf.data` set that contains them.
    """
    spec = _element_spec(x)
    if spec is None:
        return None if isinstance(y, dict | list | tuple) else y
    targets = spec[1] if isinstance(spec, tuple) and len(spec) > 1 else None
    shape = getattr(targets, "shape", None)
    return None if shape is None or shape.rank is None else targets


def _element_spec(x: Any) -> Any:
    """Returns the element spec of `x` if it is a `tf.data` set, else `None`."""
    # Users of `tf.data` have imported TensorFlow; models do not need it.
    tf = sys.modules.get("tensorflow")
    is_set = tf is not None and isinstance(x, tf.data.Dataset)
    return x.element_spec if is_set else None


def check_learning_rate(optimizer: keras.optimizers.Optimizer | None) -> None:
    """Raises a `UserError` unless the learning rate is a finite number."""
    rate = optimizer and float(ops.convert_to_numpy(optimizer.learning_rate))
    if optimizer and not math.isfinite(rate):
        raise UserError(
            "The optimizer's learning rate must be a finite number. Received: "
            f"{rate}"
        )


def sentence_of(error: Exception, head: Head | None) -> str | None:
    """Returns a readable message for an error that bad data caused, or `None`.

    Such errors come from `tf.data` sets and generators. Their batches are not
    checked beforehand, because that would slow down every step. If a label is
    invalid, the message lists the labels of `head`.
    """
    if _TEXTS.search(str(error)):
        return (
            "The data has texts where numbers are expected. Make features "
            "with `tf_adapters.TextPacker(tokenizer, max_length=...)(texts)`, "
            "and labels are class ids or numbers."
        )
    found = _LABEL_OUTSIDE.search(str(error))
    if found is None:
        return None
    label, first, end = found.groups()
    if label in _NAN_AS_INTEGER:
        label = "NaN"
    names = ", ".join(getattr(head, "labels", ()))
    return (
        f"The data has the label {label}; expected a class id from {first} to "
        f"{int(end) - 1}{names and f': {names}'}. Leave out rows without a "
        "label."
    )
