"""Parses YAML files and strings such as `"a.b=value"` into nested dicts."""

import dataclasses
from pathlib import Path
import re
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import parse_yaml
from tf_adapters.common.text_files import read_file


def load_yaml(path: str | Path) -> dict[str, Any]:
    """Returns the mapping in a YAML file as a dict.

    Raises:
        ConfigError: If the file cannot be read or does not hold a mapping.
    """
    try:
        content = read_file(path)
    except UserError as error:
        raise ConfigError(f"Cannot read {cut(path)}: {error}") from error
    try:
        values = parse_yaml(content.decode())
    except ValueError as error:
        raise ConfigError(f"{path} is {_reason(error)}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{path} must hold a mapping of settings.")
    return values


def load_setting(
    path: str | Path, name: str, default: Any = dataclasses.MISSING
) -> Any:
    """Returns a single value, such as a number or string, from a YAML file.

    Args:
        path: Path of the file.
        name: Dotted name of the value, such as `"method.name"`.
        default: Value to return if the file does not have the name. If not
            given, a missing name is an error.

    Raises:
        ConfigError: If the file cannot be read, if the value is missing and
            there is no default, or if it is a list or a mapping.
    """
    value = load_yaml(path)
    for key in name.split("."):
        if not isinstance(value, dict) or key not in value:
            value = default
            break
        value = value[key]
    if value is dataclasses.MISSING or isinstance(value, dict | list):
        raise ConfigError(
            f"{path} lacks a value for the setting `{name}`: it is damaged, or "
            "does not belong to a run. Copy it again from where the run "
            "trained."
        )
    return value


def _reason(error: ValueError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start + 1}."
    return str(error)


def parse_items(text: str) -> list[dict[str, Any]]:
    """Parses overrides such as `"a.b=value,..."`.

    Values are parsed as YAML. Commas inside of brackets and quotes do not
    separate items.

    Returns:
        List with a nested dict for each item, such as `{"a": {"b": value}}`.

    Raises:
        ConfigError: If an item has no `=` or its value is malformed.
    """
    return [_parse_item(item) for item in _split_outside_brackets(text)]


def _parse_item(item: str) -> dict[str, Any]:
    key, equals, value = item.partition("=")
    if not equals:
        raise ConfigError(
            "An override reads `key=value`, for example "
            f"`method.units=256`. Received: {cut(item)}. If it is part of a "
            """value, put the value in quotes: `'head.blank="a,b"'`."""
        )
    try:
        nested = parse_yaml(value)
    except ValueError as error:
        raise ConfigError(
            f"`{cut(item)}` has a malformed value, {_reason(error)}"
        ) from error
    for part in reversed(key.strip().split(".")):
        nested = {part: nested}
    return nested


# Quotes count only at the start of a value, as in YAML.
_QUOTED = re.compile(
    r"""(?<=[=\[{,:])\s*(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')""", re.DOTALL
)


def _split_outside_brackets(text: str) -> list[str]:
    items, depth = [""], 0
    hidden = _QUOTED.sub(lambda match: "_" * len(match[0]), text)
    for character, visible in zip(text, hidden, strict=True):
        depth += (visible in "[{") - (visible in "]}")
        if visible == "," and depth == 0:
            items.append("")
        else:
            items[-1] += character
    return [item for item in items if item.strip()]
