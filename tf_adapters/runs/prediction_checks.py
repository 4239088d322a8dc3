"""Checks the lists of stored predictions before they are used."""

import types
from typing import Any

from tf_adapters.common.errors import UserError


def check_lists(compared: dict[str, Any]) -> None:
    """Raises an error if the lists of stored predictions are not valid.

    All lists must have the same length, and at least one entry.

    Args:
        compared: Dict of lists with one entry per row; see `Head.compare`.
    """
    lengths = {name: len(_checked(name, compared)) for name in compared}
    if not lengths["target"] or len(set(lengths.values())) > 1:
        raise UserError(
            f"it has lists of {lengths!r:.100} rows, which should be equally "
            "many, and at least one"
        )
    lengths["predicted"]  # Like "target", this list must exist.


def _checked(name: str, compared: dict[str, Any]) -> list[Any]:
    """Returns the list `compared[name]` after checking its entries.

    All entries must be numbers, all must be strings, or all must be lists.
    """
    values = compared[name]
    if not isinstance(values, list):
        raise UserError(f"`{name}` is not a list but {values!r:.100}")
    if len({_kind(value) for value in values}) > 1:
        raise UserError(f"`{name}` has entries of several types")
    return values


def _kind(
    value: Any, inner: tuple[type, ...] = (int, float, str, list)
) -> type:
    kind = float if isinstance(value, int) else type(value)
    if kind is float:
        float(value)  # JSON allows integers that no array can hold.
    elif isinstance(value, list):
        for one in value:
            _kind(one, inner=(int, float, str, types.NoneType))
    if not isinstance(value, inner):
        raise UserError(f"an entry is of another type: {value!r:.100}")
    return kind
