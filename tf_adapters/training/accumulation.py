"""Gradient accumulation: computes the gradients of a batch part by part."""

from collections.abc import Callable

import tensorflow as tf


def accumulate(
    gradients: Callable[..., tuple[tf.Tensor, list[tf.Tensor]]],
    features: dict[str, tf.Tensor],
    parts: int,
    shapes: list[tuple[int, ...]],
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Returns the loss and the gradients of a batch, computed part by part.

    The losses and the gradients of the parts are added up, so memory holds the
    activations of only one part at a time. The weights of the examples in
    `features` are relative to the whole batch, so the sums are its loss and
    gradients.

    Args:
        gradients: Function of a part's features and its number, an integer
            tensor. Returns the loss and a list of gradients.
        features: Dict of tensors whose first axis is the batch.
        parts: Integer. Number of parts of equal size. If the batch cannot be
            divided evenly, the end is padded.
        shapes: Shape of each gradient.
    """
    if parts == 1:
        return gradients(features, 0)

    divided = {k: _in_parts(k, v, parts) for k, v in features.items()}

    def add(
        number: tf.Tensor, loss: tf.Tensor, total: list[tf.Tensor]
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        part = {name: value[number] for name, value in divided.items()}
        more, found = gradients(part, number)
        total = [a + b for a, b in zip(total, found, strict=True)]
        return number + 1, loss + more, total

    _, loss, total = tf.while_loop(
        lambda number, *_: number < parts,
        add,
        [0, 0.0, [tf.zeros(shape) for shape in shapes]],
        parallel_iterations=1,
    )
    return loss, total


def _in_parts(name: str, value: tf.Tensor, parts: int) -> tf.Tensor:
    """Splits a feature into parts: `(batch, ...)` to `(parts, rows, ...)`.

    The last rows are padded with copies of the first row, whose weight is 0.
    Unlike empty inputs, a real text does not give infinite values.
    """
    rows = value.shape[0]
    rows = tf.shape(value)[0] if rows is None else rows
    extra = -rows % parts
    fill = tf.repeat(value[:1], extra, axis=0)
    if name == "weights":
        fill = tf.zeros_like(fill)
    inner = [
        tf.shape(value)[axis] if size is None else size
        for axis, size in enumerate(value.shape)
    ]
    return tf.reshape(
        tf.concat([value, fill], axis=0),
        [parts, (rows + extra) // parts, *inner[1:]],
    )
