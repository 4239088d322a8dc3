"""Converts and checks a study's settings, which are nested or dotted."""

import dataclasses
import functools
from typing import Any

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve

# Settings whose value is a mapping. They are not split into dotted keys.
_LEAVES = (
    *("members.settings", "method.adapter", "data.train_examples_of"),
    *("language_adapters", "search.space"),
)


def settings_of(nested: Any) -> dict[Any, Any]:
    """Converts settings to dotted keys, and checks that the keys exist."""
    check_mapping(nested)
    flat = as_dotted(nested)
    check_are_settings(flat)
    return flat


def check_mapping(value: Any) -> None:
    """Raises `ConfigError` if a value in a study's file is not a mapping."""
    if not isinstance(value, dict):
        raise ConfigError(
            f"Expected a mapping of settings. Received: {shown(value)}"
        )


def check_are_settings(keys: Any) -> None:
    """Raises `ConfigError` if any of the dotted keys is not a setting."""
    known = _known_settings()
    for key in keys:
        check_known("setting", key, sorted(known), ConfigError)


def as_dotted(nested: Any, prefix: str = "") -> dict[Any, Any]:
    """Converts nested settings to settings with dotted keys."""
    flat = {}
    for key, value in nested.items():
        inner = {f"{prefix}{key}": value}
        if isinstance(value, dict) and f"{prefix}{key}" not in _LEAVES:
            inner = as_dotted(value, f"{prefix}{key}.")
        for dotted, leaf in inner.items():
            dotted = "method" if dotted == "method.name" else dotted
            if dotted in flat:
                raise ConfigError(f"`{cut(dotted)}` is set twice.")
            flat[dotted] = leaf
    return flat


def nest(flat: Any) -> dict[str, Any]:
    """Converts dotted settings to the nested dict that `resolve` takes."""
    nested = {}
    for key, value in flat.items():
        key = "method.name" if key == "method" else key
        for part in reversed(key.split(".")):
            value = {part: value}
        nested = resolve.merge(nested, value)
    return nested


@functools.cache
def _known_settings() -> set[Any]:
    known = set(
        as_dotted(resolve.to_dict(resolve.resolve_config({"task": ""})))
    )
    for method in methods.METHODS.values():
        fields = dataclasses.fields(method)
        known.update(f"method.{field.name}" for field in fields)
    for head in heads.HEADS.values():
        fields = dataclasses.fields(head)
        known.update(f"head.{field.name}" for field in fields)
    return known


def refuse_both(
    first: Any, first_name: Any, second: Any, second_name: Any
) -> None:
    """Raises `ConfigError` if the dicts `first` and `second` share a key.

    The message uses the names of the dicts, `first_name` and `second_name`.
    """
    both = sorted(set(first) & set(second))
    if both:
        raise ConfigError(
            f"`{cut(both[0])}` is set both in {first_name} and in "
            f"{second_name}. Leave one of the two out."
        )


def label_of(settings: Any) -> str:
    """Returns a label for settings, such as `"lora, train.epochs 3"`."""
    return ", ".join(
        str(value) if key == "method" else f"{key} {value}"
        for key, value in settings.items()
    )


def matches(wanted: dict[str, Any], settings: dict[str, Any]) -> bool:
    """Returns whether settings have the wanted values.

    Args:
        wanted: Dict from a setting to its value or to a list of possible
            values.
        settings: Dict from setting to value.
    """
    return all(
        settings.get(key) == value
        or (isinstance(value, list) and settings.get(key) in value)
        for key, value in wanted.items()
    )
