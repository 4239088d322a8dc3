"""Checks arguments of text models that they share with Keras's models."""

from collections.abc import Mapping
import numbers
from typing import Any

from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.tasks.output_kinds import KINDS

# Arguments of Keras's `fit` for its own evaluation of held-out data, which
# texts do not use, with the value that has no effect.
_OF_VALIDATION = {
    "validation_batch_size": None,
    "validation_freq": 1,
    "validation_steps": None,
}


def batch_size_of(batch_size: int | None) -> int:
    """Returns the batch size, or Keras's default of 32 if it is `None`.

    Raises:
        UserError: If it is not a positive integer.
    """
    if batch_size is None:
        return 32
    if not isinstance(batch_size, numbers.Integral) or batch_size < 1:
        raise UserError(
            "`batch_size` must be a positive integer. Received: "
            f"batch_size={shown(batch_size)}"
        )
    return int(batch_size)


def check_epoch(initial_epoch: int) -> None:
    """Raises a `UserError` unless the number of the first epoch is one."""
    if not isinstance(initial_epoch, numbers.Integral) or initial_epoch < 0:
        raise UserError(
            "`initial_epoch` must be the number of epochs so far, an integer, "
            "at least 0. Received: "
            f"initial_epoch={shown(initial_epoch)}"
        )


def check_answers(head: heads.Head) -> None:
    """Raises a `UserError` if a head only pretrains adapters."""
    name = heads.name_of(head)
    if KINDS[name].is_pretraining:
        raise UserError(
            f"A text model with a head of the kind {name} encodes texts, but "
            "neither trains nor answers. `tf-adapters train "
            "--pretrain_steps=1000` pretrains an adapter."
        )


def check_no_options(method: str, options: Mapping[str, Any]) -> None:
    """Raises a `UserError` if there are options that texts do not support.

    Args:
        method: Name of the method of `keras.Model` that has the options.
        options: Dict from name to value. `None`, an empty list, and
            `return_dict=True` have no effect and are allowed.
    """
    names = [
        name
        for name, value in options.items()
        if not (value is None or (isinstance(value, list) and not value))
        and (name, value is True) != ("return_dict", True)
    ]
    if names:
        listed = cut(", ".join(f"`{name}`" for name in names))
        raise UserError(
            f"`{method}` of texts does not support {listed}. Leave it out. "
            "Token features, which `model.preprocessor(texts)` makes, take all "
            "options of Keras."
        )


def check_fit_options(options: Mapping[str, Any]) -> None:
    """Raises a `UserError` if options of `fit` have no effect on texts.

    Args:
        options: Dict from name to value. Options that `keras.Model.fit` applies
            to texts are ignored.
    """
    given = {
        name: options[name]
        for name, unused in _OF_VALIDATION.items()
        if name in options and options[name] != unused
    }
    check_no_options("fit", given)
