"""Helpers for optional packages, the extras of pyproject.toml."""

from collections.abc import Iterator
import contextlib
import importlib.util

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError


@contextlib.contextmanager
def needs_extra(extra: str, what: str) -> Iterator[None]:
    """Converts a failed import in a `with` block to an error for the user.

    The message says which extra to install.

    Args:
        extra: Name of the extra in `[project.optional-dependencies]`.
        what: Feature that needs the extra, as the beginning of a sentence.

    Raises:
        ConfigError: If a package is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or str(error)).partition(".")[0]
        raise ConfigError(
            f"{what} needs the package `{package}`: pip install "
            f"'tf_adapters[{extra}]'"
        ) from error


def has_tensorflow_text() -> bool:
    """Returns whether TensorFlow Text is installed.

    It is optional: there is none for Windows, and Keras's other backends train
    models without TensorFlow.
    """
    try:
        return importlib.util.find_spec("tensorflow_text") is not None
    except ImportError:
        return False


@contextlib.contextmanager
def needs_tensorflow_text() -> Iterator[None]:
    """Converts a failed import of TensorFlow Text to an error for the user.

    Raises:
        UserError: If TensorFlow Text is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise UserError(
            "Models and data sets that take texts in a TensorFlow graph need "
            "the package `tensorflow_text`: pip install tensorflow-text. There "
            "is none for Windows. Lists and files of texts can be used "
            "without it, and exported files that take token ids, such as "
            "--format=onnx."
        ) from error
