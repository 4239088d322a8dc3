"""Checks the types of the entries of an `adapter_config.json`.

Code that reads the file can rely on these types. Methods and heads check their
own settings.
"""

import math
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown

# The maximum length of a path on Linux.
_MAX_LENGTH = 4096
# The maximum depth of nested values. Even a composition of compositions has
# only a few levels.
_MAX_DEPTH = 50
_PARTS = {
    "encoder": (dict, "an object"),
    "method": (dict, "an object"),
    "head": (dict | None, "an object or null"),
    "plugins": (dict, "an object"),
    "members": (list, "a list"),
    "below": (dict | None, "an object or null"),
    "left_out": (list, "a list of integers"),
    "details": (dict, "an object"),
    "weights_sha256": (str | None, "text"),
}
_REQUIRED = ("encoder", "method", "head")


def _read_version(config: object) -> int:
    """Returns the format version in a parsed `adapter_config.json`.

    Raises:
        UserError: If there is no format version, or it is not an integer.
    """
    if not isinstance(config, dict):
        raise UserError(f"expected an object {{...}}, received {shown(config)}")
    version = config.get("format_version")
    if type(version) is not int:
        raise UserError(
            f"`format_version` must be an integer, received {shown(version)}"
        )
    return version


def check_config(config: Any, known_version: int) -> int:
    """Checks an adapter's configuration and returns its format version.

    Args:
        config: Parsed content of `adapter_config.json`.
        known_version: Format version that this library can read. The entries
            of a configuration with another version are not checked.

    Raises:
        UserError: If there is no version, or if an entry is missing or has the
            wrong type. The message names the entry.
    """
    version = _read_version(config)
    if version == known_version:
        _check_parts(config)
    return version


def _check_parts(config: dict[str, Any]) -> None:
    for key, (kind, in_words) in _PARTS.items():
        if key not in config and key not in _REQUIRED:
            continue
        if not isinstance(config.get(key, ...), kind):
            raise _wrong(key, in_words, config.get(key))
    _check_values("the whole", config, are_finite=False)
    for key in ("method", "head"):
        _check_values(key, config[key], are_finite=True)
    _check_texts("encoder", config["encoder"], "name", "fingerprint")
    _check_texts("method", config["method"], "name")
    if config["head"] is not None:
        _check_texts("head", config["head"], "name")
    _check_texts("plugins", plugins := config.get("plugins", {}), *plugins)
    for member in config.get("members", []):
        _check_texts("members", member, "name", "folder", "fingerprint")
    for block in config.get("left_out", []):
        if type(block) is not int:
            raise _wrong("left_out", "a list of integers", block)


def _check_texts(what: str, part: object, *keys: str) -> None:
    """Raises a `UserError` unless an object has strings at the given keys.

    The strings must not be longer than `_MAX_LENGTH`. The key `relative` is
    checked too if it is present. `what` is the object's name in messages.
    """
    if not isinstance(part, dict):
        raise _wrong(what, "objects", part)
    keys = (*keys, "relative") if "relative" in part else keys
    for key in keys:
        text = part.get(key)
        if not isinstance(text, str) or len(text) > _MAX_LENGTH:
            raise _wrong(
                f"{what}.{key}",
                f"text, at most {_MAX_LENGTH:,} characters",
                text,
            )


def _check_values(
    what: str, value: object, are_finite: bool, depth: int = 0
) -> None:
    """Raises a `UserError` if a value is nested too deeply.

    If `are_finite` is true, NaN and infinity within the value are errors too.
    `what` is the value's name in messages.
    """
    if depth > _MAX_DEPTH:
        raise UserError(f"`{what}` must be nested less deeply")
    if are_finite and isinstance(value, float) and not math.isfinite(value):
        raise _wrong(what, "of finite numbers", value)
    if isinstance(value, dict):
        value = list(value.values())
    for one in value if isinstance(value, list) else ():
        _check_values(what, one, are_finite, depth + 1)


def _wrong(key: str, expected: str, received: object) -> UserError:
    return UserError(f"`{key}` must be {expected}, received {shown(received)}")
