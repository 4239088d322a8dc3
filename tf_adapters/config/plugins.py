"""Imports users' own files that register methods and heads."""

from __future__ import annotations

from collections.abc import Iterable
import importlib.util
from pathlib import Path
import sys
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut

if TYPE_CHECKING:
    import os


# Added to errors about an unknown method or head.
HINT = "To use your own, give the file that registers it: --plugin=<file>."


# The files that this process has imported.
_LOADED = []


def plugin_flags() -> list[str]:
    """Returns `--plugin` flags for the plugins that this process imported."""
    return [f"--plugin={path}" for path in _LOADED]


def load_plugins(paths: Iterable[Any]) -> None:
    """Imports Python files, each only once in this process.

    Args:
        paths: Iterable of paths. The files are executed, so use trusted ones
            only.

    Raises:
        ConfigError: If a file does not exist or fails.
    """
    for path in map(Path, paths):
        if not path.is_file():
            raise ConfigError(
                f"--plugin={cut(path)} is not a file. Expected a Python file "
                "with `@tf_adapters.methods.register(...)` or "
                "`@tf_adapters.heads.register(...)` in it."
            )
        name = f"tf_adapters_plugin_{path.stem}"
        known: Any = sys.modules.get(name)
        if known is None or Path(known.__file__) != path.absolute():
            _import(name, path.absolute())
            _LOADED.append(path.absolute())


def _import(name: str, path: str | os.PathLike[str]) -> None:
    spec: Any = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[name]
        raise ConfigError(
            f"--plugin={path} cannot be imported: {type(error).__name__}: "
            f"{cut(error)}"
        ) from error
