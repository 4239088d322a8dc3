"""The names of a head's classes, and outputs that are as many."""

import numpy as np

from tf_adapters.common.errors import UserError


def class_names(labels, head):
    """Returns class names as a tuple, in the order of their ids.

    Args:
        labels: What a head was given.
        head: Its name in Python, for the error.

    Raises:
        UserError: If these are not two different names or more.
    """
    names = tuple(labels) if isinstance(labels, tuple | list) else ()
    are_names = all(isinstance(name, str) for name in names)
    if not are_names or not 2 <= len(set(names)) == len(names):
        raise UserError(
            f"`labels` of {head} must be the names of two classes or more, "
            "each of them once, in the order of their ids: "
            f"`{head}(labels=('no', 'yes'))`. Received: {labels!r:.100}"
        )
    return names


def check_outputs(outputs, names):
    """Raises a `UserError` unless the last axis has a number for each class."""
    shape = np.shape(outputs)
    if len(shape) < 2 or shape[-1] != len(names):
        raise UserError(
            f"Expected outputs of shape (rows, {len(names)}), a number for "
            f"each of {', '.join(names):.100}. Received: shape {shape}. Was "
            "the model made with another head?"
        )
