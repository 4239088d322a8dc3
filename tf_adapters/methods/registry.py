"""Registers methods by name, and converts them to and from plain values."""

from collections.abc import Callable
import dataclasses
from typing import Any
from typing import TypeVar

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.registry import Registry
from tf_adapters.methods.method import Method

# Functions that were once defined in the class `Method`, and now in `Gating`.
_MOVED = ("last_phase_step", "start_last_phase", "reopen", "pack", "unpack")
M = TypeVar("M", bound=Method)

# Maps the names of methods to their classes; `register` fills it.
METHODS = Registry("method", "@tf_adapters.methods.register")


def register(name: str) -> Callable[[type[M]], type[M]]:
    """Returns a decorator that registers a `Method` under a name.

    Args:
        name: String that selects the method with `--method` and identifies it
            in adapter folders.

    Raises:
        UserError: If the class is not a `Method`, a field has no default, the
            name is taken, or the class defines a function of `Gating`.
    """

    def decorate(cls: type[M]) -> type[M]:
        for field in getattr(cls, "__dataclass_fields__", {}).values():
            if field.default is dataclasses.MISSING:
                raise UserError(
                    f"{cls.__name__}: the setting `{field.name}` needs a "
                    "default, which `--method` alone uses."
                )
        for moved in _MOVED:
            if hasattr(cls, moved):
                raise UserError(
                    f"{cls.__name__}: `{moved}` is now a method of the object "
                    "that `gating` returns. Move it to a subclass of "
                    "`tf_adapters.methods.support.gating.Gating`."
                )
        METHODS.add(name, cls, Method)
        return cls

    return decorate


def name_of(method: Method) -> str:
    """Returns the name under which a method's class is registered."""
    return METHODS.name_of(method)


def to_config(method: Method) -> dict[str, Any]:
    """Converts a method to a dict of plain values, including its `name`.

    Fields that are methods or tuples of methods are converted too.
    """
    values = {
        field.name: _to_plain(getattr(method, field.name))
        for field in dataclasses.fields(method)
    }
    return {"name": name_of(method)} | values


def parts_of(method: Method) -> list[Method]:
    """Returns a method and all methods in its fields, such as a union's."""
    found = [method]
    for field in dataclasses.fields(method):
        value = getattr(method, field.name)
        for part in value if isinstance(value, tuple) else (value,):
            if isinstance(part, Method):
                found += parts_of(part)
    return found


def _to_plain(value: Any) -> Any:
    if isinstance(value, Method):
        return to_config(value)
    if isinstance(value, tuple) and any(isinstance(v, Method) for v in value):
        return [to_config(v) for v in value]
    return value


def from_config(config: dict[str, Any]) -> Method:
    """Creates a method from a dict that `to_config` returned.

    Raises:
        UserError: If the name or a hyper-parameter is unknown, or if a value
            has the wrong type.
    """
    if not isinstance(config, dict):
        raise UserError(
            "A method's configuration must be a mapping. Received: "
            f"{shown(config)}"
        )
    options = dict(config)
    name = options.pop("name", None)
    check_known("method", name, METHODS)
    options = {key: _to_methods(value) for key, value in options.items()}
    return dataclass_config.from_dict(METHODS[name], options, "method.")


def _to_methods(value: Any) -> Any:
    if isinstance(value, dict):
        return from_config(value)
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return tuple(from_config(v) for v in value)
    return value
