"""Gradient accumulation: sums the gradients of a batch's micro-batches."""

from collections.abc import Callable

import tensorflow as tf


def accumulate(
    gradients: Callable[..., tuple[tf.Tensor, list[tf.Tensor]]],
    features: dict[str, tf.Tensor],
    parts: int,
    shapes: list[tuple[int, ...]],
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """Returns the loss and the gradients of a batch, summed over micro-batches.

    A batch is divided into equal parts, called micro-batches, and memory holds
    the activations of only one part at a time. The weights of the examples in
    `features` are relative to the whole batch, so the sums over the parts are
    the loss and the gradients of the batch.

    Args:
        gradients: Function of a part's features and its number, an integer
            tensor. Returns the loss and a list of gradients.
        features: Dict of tensors whose first axis is the batch.
        parts: Integer. Number of micro-batches. If the batch cannot be divided
            evenly, the end is padded.
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
    """Reshapes the feature `name`: `(batch, ...)` to `(parts, rows, ...)`.

    Copies of the first row are added at the end as padding. In the feature
    `"weights"`, the padding is 0. Unlike empty inputs, a real text does not
    give infinite values.
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
