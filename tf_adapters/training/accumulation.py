"""Gradient accumulation: a batch in parts, one after the other, in one step."""

import tensorflow as tf


def sums(gradients, features, parts, shapes):
    """Returns the sums of loss and gradients over the parts of a batch.

    Only one part's activations are in memory at a time. Weights of the loss are
    those of the whole batch, so that the sums are its own loss and gradients.

    Args:
        gradients: Function of a part's features and its number, an integer
            tensor, that returns loss and list of gradients.
        features: Dict of tensors, rows first.
        parts: Integer. Parts of nearly equal size; some may be empty.
        shapes: Shape of each gradient.
    """
    if parts == 1:
        return gradients(features, 0)

    def add(number, loss, total):
        part = {k: _part(v, number, parts) for k, v in features.items()}
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


def _part(value, number, parts):
    """Returns the rows of one part, of static size where all are equal."""
    size = value.shape[0]
    if size is not None and size % parts == 0:
        shape = [parts, size // parts, *tf.shape(value)[1:]]
        inner = tf.reshape(value, tf.stack(shape))[number]
        inner.set_shape([size // parts, *value.shape[1:]])
        return inner
    size = tf.shape(value)[0]
    return value[number * size // parts : (number + 1) * size // parts]
