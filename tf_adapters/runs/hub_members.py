"""Adapters on the Hub that a run's settings name.

A run folder may come from somebody else, who chose these adapters. So they are
not downloaded when the run is evaluated, used or exported. An adapter is read
only if it is already in the Hub's cache, or if the user's own command names it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.interop import hub
from tf_adapters.interop import hub_address

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


def fetch_named(layers: Sequence[Any]) -> None:
    """Downloads the Hub adapters that a command names.

    Args:
        layers: List of nested dicts with the settings that the command gives.
    """
    for layer in layers:
        for _, address in _addresses(layer):
            hub.pull(address)


def check_are_here(config: Config) -> None:
    """Raises an error if a run needs adapters that the Hub's cache lacks.

    Args:
        config: `Config` of the run.

    Raises:
        ConfigError: If adapters are missing. Names the adapters, and the flags
            that download them.
    """
    settings = {
        "method": {"adapters": _adapters_of(config.method)},
        "stack_on": config.stack_on,
        "language_adapters": config.language_adapters or {},
    }
    named = _addresses(settings)
    missing = [a for _, a in named if hub.find_cached(a) is None]
    if missing:
        allowed = " ".join(_flags(named))
        raise ConfigError(
            f"This run depends on {', '.join(missing)}, which the Hub's cache "
            "does not have. Nothing was downloaded. If you trust them, give "
            f"them in the command: {allowed}"
        )


def _adapters_of(method: Any) -> Any:
    # Before a command imports Keras, the method is still a dict.
    return (
        method.get("adapters") if isinstance(method, dict) else method.adapters
    )


def _addresses(settings: Any) -> list[tuple[str, Any]]:
    """Returns the Hub adapters that are named in a nested dict of settings.

    Each adapter is a pair of the setting's key, such as `stack_on`, and the
    adapter's address on the Hub.
    """
    flat = dataclass_config.flatten(settings)
    return [
        (key, value)
        for key, values in flat.items()
        if key in ("method.adapters", "stack_on")
        or key.startswith("language_adapters.")
        for value in (values if isinstance(values, list | tuple) else [values])
        if hub_address.is_address(value)
    ]


def _flags(named: Any) -> Any:
    members = [a for key, a in named if key == "method.adapters"]
    if members:
        yield f"--adapters={','.join(members)}"
    for key, address in named:
        if key == "stack_on":
            yield f"--stack_on={address}"
        elif key != "method.adapters":
            yield f"--params_override={key}={address}"
