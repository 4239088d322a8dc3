"""What is passed to Keras's `fit`, `evaluate` and `predict` is checked here.

Arrays are looked at; of a `tf.data` set only types and shapes, and nothing is
known of a generator.
"""

from collections.abc import Sequence
import math
import re
import sys

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.models.encoder_checks import is_text

# What TensorFlow says on a processor; a GPU makes such a loss NaN.
_LABEL_OUTSIDE = re.compile(
    r"label value of (\S+) which is outside the valid range of \[(\d+), (\d+)\)"
)

_NAN_AS_INTEGER = (str(-(2**31)), str(-(2**63)))
# What Keras says of NumPy's texts.
_TEXTS = re.compile("^Invalid dtype: (str|bytes|object)")


def check_data(model, x):
    """Raises a `UserError` unless `x` has token features and rows.

    Args:
        model: `FeaturesModel`.
        x: What `predict` takes: a dict of arrays, a `tf.data` set, a generator.
    """
    spec = _element_spec(x)
    if spec is not None:
        model.check_features(spec[0] if isinstance(spec, tuple) else spec)
        rows = int(x.cardinality())
    elif isinstance(x, dict | Sequence) or hasattr(x, "__array__"):
        model.check_features(x)
        rows = len(next(iter(x.values())))
    else:
        return
    if rows == 0:
        raise UserError(
            "There are no rows: `x` is empty. Give at least one example."
        )


def checked_labels(model, x, y):
    """Returns labels as `fit` takes them, a list of numbers as an array.

    Args:
        model: `FeaturesModel`.
        x: See `check_data`.
        y: Labels, or `None` where `x` has them.

    Raises:
        UserError: If a label is no number, or not one that the head knows.
    """
    check_data(model, x)
    if isinstance(y, list | tuple):
        y = np.asarray(y)
    labels = targets_of(x, y)
    if labels is None:
        if y is None and isinstance(x, dict) and _loss(model) is not None:
            raise UserError(
                "There are no labels. Give them after the features: "
                "`model.fit(features, labels)`."
            )
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


def _check_values(model, labels):
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        place = int(np.argwhere(~np.isfinite(labels))[0][0])
        raise UserError(
            f"Labels must be finite numbers. Received: {labels[place]} in row "
            f"{place} (the first is 0). Leave out rows without a label."
        )
    if model.head is not None:
        model.head.check_labels(labels, _ignored_class(model))


def _ignored_class(model):
    """Returns the class id that the loss is told to pass over, or `None`."""
    loss = _loss(model)
    if isinstance(loss, keras.losses.SparseCategoricalCrossentropy):
        return loss.ignore_class
    return None


def _loss(model):
    """Returns what `compile` was given. The class has a method of that name."""
    return vars(model).get("loss")


def targets_of(x, y):
    """Returns labels, or what has their shape and type, or `None`.

    Several labels for a text, as of a loss of one's own, are `None` too.
    """
    spec = _element_spec(x)
    if spec is None:
        return None if isinstance(y, dict) else y
    targets = spec[1] if isinstance(spec, tuple) and len(spec) > 1 else None
    shape = getattr(targets, "shape", None)
    return None if shape is None or shape.rank is None else targets


def _element_spec(x):
    """Returns the types of a `tf.data` set's elements, else `None`."""
    # Who has such a set has imported TensorFlow; models need none.
    tf = sys.modules.get("tensorflow")
    is_set = tf is not None and isinstance(x, tf.data.Dataset)
    return x.element_spec if is_set else None


def check_learning_rate(optimizer):
    """Raises a `UserError` unless the learning rate is a finite number."""
    rate = optimizer and float(ops.convert_to_numpy(optimizer.learning_rate))
    if optimizer and not math.isfinite(rate):
        raise UserError(
            "The optimizer's learning rate must be a finite number. Received: "
            f"{rate}"
        )


def sentence_of(error, head):
    """Returns in words what TensorFlow or Keras says of data, or `None`.

    These are errors of `tf.data` sets and generators: looking at each batch
    before its step would make the step slower.
    """
    if _TEXTS.search(str(error)):
        return (
            "The data has texts where numbers are expected. Features are made "
            "by `tf_adapters.TextPacker(tokenizer, max_length=...)(texts)`, "
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
