"""Merges nested dicts of settings, and creates dataclasses from them.

Creation is strict. An unknown key, a missing key or a value of the wrong type
raises an error that names the key.
"""

from collections.abc import Iterable
import dataclasses
import functools
import math
import numbers
import types
import typing
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    D = typing.TypeVar("D", bound=DataclassInstance)


def merge(base: dict[str, Any], layer: dict[str, Any]) -> dict[str, Any]:
    """Returns `base` updated by `layer`, merging nested dicts.

    A nested dict with a different `name` replaces the earlier one as a whole.
    """
    merged = dict(base)
    for key, value in layer.items():
        if _same_thing(value, merged.get(key)):
            value = merge(merged[key], value)
        merged[key] = value
    return merged


def _same_thing(new: object, old: object) -> bool:
    if not isinstance(new, dict) or not isinstance(old, dict):
        return False
    return "name" not in new or new["name"] == old.get("name", new["name"])


def flatten(nested: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flattens nested dicts into one dict with dotted keys."""
    flat = {}
    for key, value in nested.items():
        if isinstance(value, dict):
            flat.update(flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


@functools.cache
def type_hints(cls: type[Any]) -> dict[str, Any]:
    """Returns a dict from each field's name to its type annotation.

    The dict of each class is cached, because studies need it often.
    """
    return typing.get_type_hints(cls)


def from_dict(cls: "type[D]", values: object, prefix: str = "") -> "D":
    """Creates a dataclass instance from a dict, checking each key.

    Args:
        cls: The dataclass.
        values: Dict of values for its fields; nested dicts for fields that are
            dataclasses.
        prefix: Text before each key in messages, such as `"method."`.

    Raises:
        ConfigError: If a key is unknown or missing, or a value has the wrong
            type.
    """
    if not isinstance(values, dict):
        raise ConfigError(
            f"`{prefix.rstrip('.')}` must be a mapping of settings. Received: "
            f"{shown(values)}"
        )
    fields = {field.name: field for field in dataclasses.fields(cls)}
    for key in values:
        known = [prefix + name for name in fields]
        check_known("setting", f"{prefix}{key}", known, ConfigError)
    hints = type_hints(cls)
    built = {
        key: _coerce(value, hints[key], f"{prefix}{key}")
        for key, value in values.items()
    }
    for name, field in fields.items():
        if name not in built and field.default is dataclasses.MISSING:
            raise ConfigError(f"Setting `{prefix}{name}` is missing.")
    return cls(**built)


def check_fields(
    cls: "type[DataclassInstance]", settings: Iterable[str]
) -> None:
    """Raises a `UserError` if a setting is not a field of a dataclass.

    Args:
        cls: The dataclass.
        settings: Iterable of names.
    """
    fields = [field.name for field in dataclasses.fields(cls)]
    for name in settings:
        check_known(f"setting of {cls.__name__},", name, fields)


def check_values(instance: "DataclassInstance") -> None:
    """Raises a `UserError` if a field's value does not have the field's type.

    Only fields for numbers, `bool` or tuples are checked. NumPy numbers are
    accepted, and become numbers of Python, which adapter folders can store. NaN
    and infinity are not accepted, because they would spread to all computed
    values.
    """
    hints = type_hints(type(instance))
    for field in dataclasses.fields(instance):
        value, hint = getattr(instance, field.name), hints[field.name]
        value = _without_numpy(value)
        object.__setattr__(instance, field.name, value)
        accepted = _accepted(hint)
        kind = next((kind for kind in _KINDS if kind in accepted), None)
        is_none = value is None and types.NoneType in accepted
        if kind is None or is_none or _KINDS[kind](value):
            _check_items(instance, field.name, hint)
            continue
        is_large = isinstance(value, int) and abs(value) >= 2**63
        bound = " below 2**63" if is_large else ""
        raise UserError(
            f"`{field.name}` of {type(instance).__name__} must be "
            f"{_IN_WORDS[kind]}{bound}. Received: {cut(repr(value))}"
        )


def _without_numpy(value: Any) -> Any:
    """Converts a NumPy number, or those in a tuple, to numbers of Python."""
    if isinstance(value, tuple):
        return tuple(map(_without_numpy, value))
    value = value.item() if isinstance(value, np.generic) else value
    # NumPy's longest floats have no equal in Python.
    return float(value) if isinstance(value, np.generic) else value


def _check_items(instance: Any, name: str, hint: Any) -> None:
    """Raises a `UserError` if a field for integers holds something else."""
    of_integers = typing.get_args(hint)[:1] == (int,)
    if typing.get_origin(hint) is not tuple or not of_integers:
        return
    value = getattr(instance, name)
    if not all(_KINDS[int](item) for item in value):
        raise UserError(
            f"`{name}` of {type(instance).__name__} must be a list of "
            f"integers. Received: {cut(repr(value))}"
        )


def _is_number(value: Any, kind: type[numbers.Real]) -> bool:
    if isinstance(value, bool) or not isinstance(value, kind):
        return False
    # `isfinite` fails for integers that no float can hold.
    if isinstance(value, numbers.Integral):
        return abs(int(value)) < 2**63
    return math.isfinite(value)


# Dict from a type to a function that says whether a value has the type. For a
# union such as `float | int`, the first of these types is checked.
_KINDS = {
    float: lambda value: _is_number(value, numbers.Real),
    int: lambda value: _is_number(value, numbers.Integral),
    bool: lambda value: isinstance(value, bool),
    tuple: lambda value: isinstance(value, tuple),
}
_IN_WORDS = {
    float: "a finite number",
    int: "an integer",
    bool: "True or False",
    tuple: "a list",
}
_PLURALS = {int: "integers", str: "texts"}


def _coerce(value: Any, hint: Any, name: str) -> Any:
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return from_dict(hint, value, f"{name}.")
    if hint is typing.Any:
        return value
    if typing.get_origin(hint) is typing.Union:
        # This is `Literal[...] | None`. Other unions are a `types.UnionType`.
        hint, _ = typing.get_args(hint)
        if value is None:
            return None
    if typing.get_origin(hint) is typing.Literal:
        what = f"value of setting `{name}`,"
        check_known(what, value, typing.get_args(hint), ConfigError)
        return value
    if typing.get_origin(hint) is tuple:
        kind = typing.get_args(hint)[0]
        if typing.get_origin(kind) is typing.Literal:
            kind = str
        if isinstance(value, list | tuple) and all(
            type(item) is kind for item in value
        ):
            return tuple(value)
        raise ConfigError(
            f"Setting `{name}` must be a list of {_PLURALS[kind]}. Received: "
            f"{shown(value)}"
        )
    accepted = _accepted(hint)
    if value is None and types.NoneType in accepted:
        return None
    if float in accepted and not isinstance(value, bool | None):
        # YAML parses `3e-4` as text, because it has no dot.
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    if type(value) in accepted:
        return value
    expected = " or ".join(kind.__name__ for kind in accepted)
    raise ConfigError(
        f"Setting `{name}` must be of type {expected}. Received: "
        f"{shown(value)} of type {type(value).__name__}"
    )


def _accepted(hint: Any) -> tuple[Any, ...]:
    """Returns a tuple of the types that an annotation accepts."""
    if isinstance(hint, types.UnionType):
        return typing.get_args(hint)
    return (typing.get_origin(hint) or hint,)
