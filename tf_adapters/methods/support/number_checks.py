"""Checks the ranges of numbers that several methods have as settings."""

import dataclasses
from typing import Any

from tf_adapters.common.errors import UserError

_DROPOUT = ("dropout", "attention_dropout")
_NOT_NEGATIVE = ("l0_lambda", "init_range", "value_pull")


def check_numbers(method: Any) -> None:
    """Raises an error if a dropout rate or a weight is out of range.

    Args:
        method: Method whose settings have the right types.

    Raises:
        UserError: If a dropout rate is not in `[0, 1)`, or if `l0_lambda`,
            `init_range` or `value_pull` is negative.
    """
    for name in (field.name for field in dataclasses.fields(method)):
        value = getattr(method, name)
        if not isinstance(value, int | float):
            continue  # Settings of a plug-in may have other types.
        if name in _DROPOUT and not 0 <= value < 1:
            raise UserError(
                f"`{name}` is the share of elements that are dropped, at least "
                f"0 and below 1. Received: {name}={value}"
            )
        if name in _NOT_NEGATIVE and value < 0:
            raise UserError(
                f"`{name}` must not be negative. Received: {name}={value}"
            )
