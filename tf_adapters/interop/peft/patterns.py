"""Matches module names against the settings of a PEFT folder.

The settings can be regular expressions from an untrusted source. PEFT runs
them with Python's `re`, in which a few characters can take practically forever.
RE2 is used here instead: its time is linear in the expression and the name. It
has no look-around and no back-references; other expressions for module names
mean the same in `re` and RE2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import re2

from tf_adapters.common.errors import AdapterError

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Collection
    from collections.abc import Iterable
    from pathlib import Path

# Enough for 250 regular expressions, one for each module.
_MAX_STATES = 20_000
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


def targets(
    config: dict[str, Any], source: str | Path
) -> Callable[[Collection[str]], bool]:
    """Returns a function that says whether a module has a LoRA.

    The function takes a collection of the module's names; see `matcher`.

    Args:
        config: Dict, the contents of `adapter_config.json`.
        source: Path of the file, for errors.
    """
    is_named = matcher(config, "target_modules", source)
    is_excluded = matcher(config, "exclude_modules", source)
    return lambda names: is_named(names) and not is_excluded(names)


def ranks_and_alphas(
    config: dict[str, Any], source: str | Path
) -> tuple[Callable[[Collection[str]], Any], Callable[[Collection[str]], Any]]:
    """Returns two functions that give a module's rank and its alpha.

    Each takes a collection of the module's names; see `override`.

    Args:
        config: Dict, the contents of `adapter_config.json`.
        source: Path of the file, for errors.
    """
    rank, alpha = config.get("r", 8), config.get("lora_alpha", 8)
    return (
        override(config, "rank_pattern", rank, source),
        override(config, "alpha_pattern", alpha, source),
    )


def matcher(
    config: dict[str, Any], setting: str, source: str | Path
) -> Callable[[Collection[str]], bool]:
    """Returns a function that says whether a setting matches a module.

    The function takes a collection of the module's names, with and without the
    encoder's prefix. If the setting is a string, this is a regular expression
    for a whole name. If it is a list, its items are names or ends of names.
    The string `"all-linear"` matches every module.

    Args:
        config: Dict, the contents of `adapter_config.json`.
        setting: Key of the setting, `"target_modules"` for example.
        source: Path of the file, for errors.

    Raises:
        AdapterError: If RE2 does not accept the expression.
    """
    value = config.get(setting) or []
    if value == "all-linear":
        return lambda names: True
    if not isinstance(value, str):
        return lambda names: any(
            f".{name}".endswith(f".{end}") for name in names for end in value
        )
    (whole,) = _compiled([value], "{}", setting, source)
    return lambda names: any(whole.fullmatch(name) for name in names)


def override(
    config: dict[str, Any], setting: str, default: Any, source: str | Path
) -> Callable[[Collection[str]], Any]:
    """Returns a function that gives a module's value of a setting.

    The function takes a collection of the module's names, with and without the
    encoder's prefix.

    Args:
        config: Dict, the contents of `adapter_config.json`.
        setting: Key in `config`, such as `"rank_pattern"`. The value under this
            key is a dict that maps regular expressions to values. An expression
            matches a whole name or its end; the first match counts.
        default: Value for modules that no expression matches.
        source: Path of the file, for errors.

    Raises:
        AdapterError: If RE2 does not accept an expression.
    """
    values = config.get(setting) or {}
    found = _compiled(values, r"(.*\.)?({})$", setting, source)
    pairs = list(zip(found, values.values(), strict=True))

    def value_of(names: Collection[str]) -> Any:
        for pattern, value in pairs:
            if any(pattern.match(name) for name in names):
                return value
        return default

    return value_of


def _compiled(
    patterns: Iterable[str], template: str, setting: str, source: str | Path
) -> list[Any]:
    found, states = [], 0
    for pattern in patterns:
        try:
            _check(pattern)
            one = re2.compile(template.format(pattern), _OPTIONS)
        except re2.error as error:
            raise _refusal(pattern, setting, source, error) from error
        found.append(one)
        states += one.programsize
        if states > _MAX_STATES:
            raise AdapterError(
                f"{source}: the regular expressions of `{setting}` are too "
                f"large, with more than {_MAX_STATES:,} states. List the names "
                "of the modules instead."
            )
    return found


def _check(pattern: str) -> None:
    # Python reads `{,n}` as `{0,n}`, RE2 as literal characters.
    if "{," in pattern:
        raise re2.error("no lower bound before `,`")


def _refusal(
    pattern: str, setting: str, source: str | Path, error: Exception
) -> AdapterError:
    why = error.args[0]
    why = why.decode(errors="replace") if isinstance(why, bytes) else why
    return AdapterError(
        f"{source}: `{setting}` has the regular expression {pattern[:80]!r}, "
        f"which tf_adapters does not run ({why[:80]}). Write it without "
        "look-around, back-references and possessive repetition, or list the "
        "names of the modules."
    )
