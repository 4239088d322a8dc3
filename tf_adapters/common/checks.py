"""Checks of names and choices, with suggestions for unknown ones."""

from collections.abc import Callable
from collections.abc import Iterable
import contextlib
import dataclasses
import difflib
import math
import numbers
import typing
from typing import TYPE_CHECKING

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

# Dict from names of settings in PEFT, `adapters` and KerasHub to our names.
_ELSEWHERE = {
    **dict.fromkeys(("size", "bottleneck_size", "adapter_size"), "units"),
    **dict.fromkeys(("bottleneck_dim", "hidden_dim", "dim", "width"), "units"),
    **dict.fromkeys(("r", "lora_rank"), "rank"),
    "lora_alpha": "alpha",
    "lora_dropout": "dropout",
    "target_modules": "projections",
    "non_linearity": "activation",
    "num_classes": "labels",
    "classes": "labels",
}


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Returns " Did you mean `x`?" for a similar known name `x`, or ""."""
    known = list(known)
    before, dot, last = str(name).rpartition(".")
    close = [f"{before}{dot}{_ELSEWHERE.get(last)}"]
    if close[0] not in known:
        close = difflib.get_close_matches(str(name), known, n=1)
    return f" Did you mean `{close[0]}`?" if close else ""


def check_known(
    what: str,
    name: object,
    known: Iterable[str],
    error: type[UserError] = UserError,
    hint: str = "",
) -> None:
    """Raises an error if `name` is not one of `known`.

    Args:
        what: What the name stands for, such as "method", for the message.
        name: The name, a value of any type.
        known: Iterable of strings.
        error: Class of the error. Defaults to `UserError`.
        hint: Sentence that is added to the message. Defaults to `""`.

    Raises:
        UserError: If `name` is unknown. The message suggests a similar name and
            lists all known names.
    """
    known = list(known)
    if not isinstance(name, str) or name not in known:
        raise error(unknown(what, name, known, hint))


def unknown(what: str, name: object, known: list[str], hint: str = "") -> str:
    """Returns the error message for an unknown name; see `check_known`."""
    return (
        f"Unknown {what} `{cut(name)}`.{did_you_mean(name, known)} Known: "
        f"{', '.join(known)}.{hint and ' ' + hint}"
    )


def check_choices(instance: "DataclassInstance") -> None:
    """Raises an error if a field's value is not one of its `Literal` choices.

    If a field is a tuple of choices, each of its items is checked.

    Args:
        instance: Instance of a dataclass.

    Raises:
        UserError: If a value is not a choice. The message names the field.
    """
    hints = typing.get_type_hints(type(instance))
    for name in (field.name for field in dataclasses.fields(instance)):
        hint, value = hints[name], getattr(instance, name)
        values = (value,)
        if typing.get_origin(hint) is tuple:
            hint, values = typing.get_args(hint)[0], value
        if typing.get_origin(hint) is typing.Literal:
            for one in values:
                check_known(name, one, typing.get_args(hint))


def is_integer(value: typing.Any) -> bool:
    """Returns whether a value is an integer, of Python or NumPy, not a bool."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_number(value: typing.Any) -> bool:
    """Returns whether a value is a real number, not a bool, NaN or infinite."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    return math.isfinite(value)


def checked_integers(name: str, values: typing.Any) -> list[int]:
    """Returns the values of an argument as a list of Python integers.

    Args:
        name: Name of the argument, for the message.
        values: Value of the argument, which should be a list of integers.

    Raises:
        UserError: If it is not.
    """
    what = "integers, such as [0, 1]"
    return list(map(int, _checked_list(name, values, is_integer, what)))


def checked_numbers(name: str, values: typing.Any) -> list[float]:
    """Returns the values of an argument as a list of Python floats.

    Args:
        name: Name of the argument, for the message.
        values: Value of the argument, which should be a list of finite numbers.

    Raises:
        UserError: If it is not.
    """
    what = "finite numbers, such as [0.7, 0.3]"
    return list(map(float, _checked_list(name, values, is_number, what)))


def _checked_list(
    name: str,
    values: typing.Any,
    is_right: Callable[[typing.Any], bool],
    what: str,
) -> list[typing.Any]:
    """Returns `list(values)`, if `is_right` is true of each value."""
    # An array of one number without a dimension is an `Iterable`, too.
    with contextlib.suppress(TypeError):
        found = [] if isinstance(values, dict) else list(values)
        if not isinstance(values, dict) and all(map(is_right, found)):
            return found
    raise UserError(
        f"`{name}` must be a list of {what}. Received: {shown(values)}"
    )
