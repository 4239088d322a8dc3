"""Packages that only some commands need: the extras of pyproject.toml."""

import contextlib
import importlib.util

from tf_adapters.common.errors import ConfigError


@contextlib.contextmanager
def needs_extra(extra, what):
    """Says which extra to install where an import in its block fails.

    Args:
        extra: Name in `[project.optional-dependencies]`.
        what: What needs it, the beginning of a sentence.

    Raises:
        ConfigError: If a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = error.name.partition(".")[0]
        raise ConfigError(
            f"{what} needs the package `{package}`: pip install "
            f"'tf_adapters[{extra}]'"
        ) from error


def has_tensorflow_text():
    """Returns whether texts can be packed by TensorFlow Text.

    Models train without TensorFlow on Keras's other backends.
    """
    try:
        return importlib.util.find_spec("tensorflow_text") is not None
    except ImportError:
        return False
