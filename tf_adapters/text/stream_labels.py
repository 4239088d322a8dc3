"""Converts labels of a `tf.data.Dataset` to a head's targets, in the graph."""

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import math
import re
from typing import Any

import tensorflow as tf

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.data.rows.class_ids import class_id
from tf_adapters.data.rows.class_ids import is_number
from tf_adapters.heads.sentence_vector import SentenceVector
from tf_adapters.tasks.output_kinds import KINDS

_UNKNOWN = "The dataset has a wrong label:"
_NO_WEIGHT = "The dataset has a wrong weight:"
# Matches the message of a failed assertion in a graph.
_SAID = re.compile(
    rf"\[({_UNKNOWN}|{_NO_WEIGHT})\] \[(.*?)\](?:\n|$)", re.DOTALL
)


def targets_function(
    head: heads.Head, across_batches: bool = False
) -> Callable[[list[tf.Tensor], tf.Tensor | None], tf.Tensor]:
    """Returns a function that converts the labels of a batch to targets.

    If the head trains without labels, the targets are made from the texts.

    Args:
        head: `Head` with one output per text, or with vectors.
        across_batches: Whether targets of different batches are compared, as in
            the metrics of a ranking. Defaults to `False`.

    Returns:
        Function of two arguments: the list of the string tensors of a batch,
        and the labels. These are a tensor `(batch,)`, or `(batch, classes)` for
        several labels per text, or `None`. The function raises a `UserError`
        during tracing if the labels have the wrong type. For wrong values, see
        `in_sentences`.
    """
    if not has_labels(head):
        number = _hashes if across_batches else _places
        return lambda texts, labels: number(tf.stack(texts, axis=1))
    make: Any = {"class": _class_ids, "classes": _many_hot, "number": _numbers}[
        KINDS[heads.name_of(head)].label
    ]
    table = _table(head.labels) if make is _class_ids else None
    if isinstance(head, SentenceVector):
        make = _scores

    def targets(texts: list[tf.Tensor], labels: tf.Tensor | None) -> tf.Tensor:
        if labels is None:
            raise UserError(
                "The dataset has no labels. Expected: elements `(texts, "
                "labels)`, or dicts with the column that `label` names."
            )
        return make(labels, head, table)

    return targets


def has_labels(head: heads.Head) -> bool:
    """Returns whether a head trains on labels, instead of on texts alone."""
    return KINDS[heads.name_of(head)].label != "none"


@contextlib.contextmanager
def in_sentences(head: heads.Head) -> Iterator[None]:
    """Context manager that explains errors about labels in a dataset.

    It replaces TensorFlow's error about an invalid label or weight with a
    `UserError`.
    """
    try:
        yield
    except tf.errors.InvalidArgumentError as error:
        found = _SAID.search(error.message)
        if found is None:
            raise
        what, value = found.groups()
        if what == _NO_WEIGHT:
            raise UserError(
                f"{what} {value}. Expected: finite numbers."
            ) from None
        raise UserError(_sentence(value, head)) from None


def _sentence(value: str, head: heads.Head) -> str:
    kind = KINDS[heads.name_of(head)].label
    if isinstance(head, SentenceVector) and math.isfinite(float(value)):
        low, high = head.score_range
        return (
            f"{_UNKNOWN} {value}. Expected: scores from {low:g} to {high:g}, "
            "or a head with another range, such as "
            "`SentenceVector(lowest_score=0, highest_score=5)`."
        )
    if kind == "number":
        return f"{_UNKNOWN} {value}. Expected: finite numbers."
    if kind == "classes":
        return f"{_UNKNOWN} {value}. Expected: 0 or 1 for each class."
    try:
        found = class_id(value, head.labels)
    except UserError as error:
        return f"The dataset has an {error}"
    if found is not None:
        return (
            f"The dataset has an unknown label {value!r}. The id of a class is "
            f"a number without zeros in front, here {found}."
        )
    return (
        f"The dataset has a text without a label, {value!r}. Leave it out: "
        "`dataset.filter(...)`."
    )


def checked_weights(weights: tf.Tensor) -> tf.Tensor:
    """Returns the weights of a batch as float32, and checks them in the graph.

    For weights that are not finite, see `in_sentences`.

    Args:
        weights: Tensor `(batch,)` or `(batch, 1)`.

    Returns:
        Tensor `(batch,)`.

    Raises:
        UserError: During tracing, if the weights have another shape, or are
            texts.
    """
    shape = weights.shape
    # A function in NumPy gives a shape of unknown rank.
    is_for_texts = shape.rank in (None, 1) or shape.as_list()[1:] == [1]
    if weights.dtype == tf.string or not is_for_texts:
        raise UserError(
            "The weights of a dataset must be a number for each text. "
            f"Received: {weights.dtype.name} of shape {shape}"
        )
    weights = tf.reshape(tf.cast(weights, tf.float32), [-1])
    is_right = tf.math.is_finite(weights)
    return _checked(is_right, weights, weights, _NO_WEIGHT)


def _table(labels: Sequence[str]) -> tf.lookup.StaticHashTable:
    """Returns a lookup table from class names to class ids.

    The table also maps ids as strings, unless a class name is a number.
    """
    ids = {name: i for i, name in enumerate(labels)}
    if not any(map(is_number, labels)):
        ids |= {str(i): i for i in range(len(labels))}
    return tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(
            list(ids), list(ids.values()), tf.string, tf.int32
        ),
        -1,
    )


def _class_ids(
    labels: tf.Tensor, head: heads.Head, table: tf.lookup.StaticHashTable
) -> tf.Tensor:
    if labels.dtype != tf.string and not labels.dtype.is_integer:
        raise _wrong(labels, "a class's name or id for each text")
    _check_rank(labels, 1, "a class's name or id for each text")
    if labels.dtype != tf.string:
        labels = tf.as_string(labels)
    ids = table.lookup(labels)
    return _checked(ids >= 0, labels, ids)


def _numbers(labels: tf.Tensor, head: heads.Head, table: None) -> tf.Tensor:
    if labels.dtype == tf.string:
        raise _wrong(labels, "a number for each text")
    _check_rank(labels, 1, "a number for each text")
    numbers = tf.cast(labels, tf.float32)
    return _checked(tf.math.is_finite(numbers), numbers, numbers)


def _scores(labels: tf.Tensor, head: SentenceVector, table: None) -> tf.Tensor:
    numbers = _numbers(labels, head, table)
    scaled = head.scaled(numbers)
    if not head.must_be_in_range:
        return scaled
    return _checked((scaled >= 0) & (scaled <= 1), numbers, scaled)


def _places(texts: tf.Tensor) -> tf.Tensor:
    """Returns a number for each text, equal for equal texts of the batch.

    The numbers are small, because Keras converts targets to float32, which has
    too few bits for a hash.
    """
    _, places = tf.unique(tf.reshape(texts, [-1]))
    return tf.reshape(places, tf.shape(texts))


def _hashes(texts: tf.Tensor) -> tf.Tensor:
    """Returns a number for each text, equal for equal texts in all batches."""
    return tf.strings.to_hash_bucket_fast(texts, 2**63 - 1)


def _many_hot(labels: tf.Tensor, head: heads.Head, table: None) -> tf.Tensor:
    expected = f"0 or 1 for each of the {len(head.labels)} classes"
    _check_rank(labels, 2, expected)
    if labels.dtype == tf.string or labels.shape[1] != len(head.labels):
        raise _wrong(labels, expected)
    values = tf.cast(labels, tf.float32)
    return _checked((values == 0) | (values == 1), values, values)


def _check_rank(labels: tf.Tensor, rank: int, expected: str) -> None:
    if labels.shape.rank != rank:
        raise _wrong(labels, expected)


def _wrong(labels: tf.Tensor, expected: str) -> UserError:
    return UserError(
        f"The labels of a dataset must be {expected}. Received: "
        f"{labels.dtype.name} of shape {tuple(labels.shape)}"
    )


def _checked(
    is_right: tf.Tensor,
    labels: tf.Tensor,
    targets: tf.Tensor,
    message: str = _UNKNOWN,
) -> tf.Tensor:
    """Returns targets, and adds a graph check that all labels are right.

    Args:
        is_right: Booleans, whether each label is right.
        labels: Labels. The error reports the first wrong one.
        targets: Tensor to return.
        message: Start of the error. By default, it says that a label is wrong.
    """
    wrong = tf.boolean_mask(labels, ~is_right)[:1]
    check = tf.debugging.Assert(
        tf.reduce_all(is_right),
        [message, tf.strings.reduce_join(_texts(wrong))],
    )
    with tf.control_dependencies([check]):
        return tf.identity(targets)


def _texts(values: tf.Tensor) -> tf.Tensor:
    return values if values.dtype == tf.string else tf.as_string(values)
