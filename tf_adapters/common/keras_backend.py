"""Chooses the backend of Keras before Keras is imported."""

import importlib.util
import os
import sys

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown

# The backends with which a command can train. Models run on PyTorch as well.
BACKENDS = ("tensorflow", "jax")
_VARIABLE = "KERAS_BACKEND"


def use_backend(name: str) -> None:
    """Makes this process compute with the given backend of Keras.

    Keras reads its backend when it is imported, so call this function before
    that. Later calls only check that the backend is the one in use.

    Args:
        name: `"tensorflow"` or `"jax"`.

    Raises:
        ConfigError: If the backend is not installed, if Keras was imported with
            another backend, or if the environment names another one.
    """
    if "keras" in sys.modules:
        _check_imported(name)
        return
    _check_installed(name)
    if name != "tensorflow":
        os.environ[_VARIABLE] = name
        return
    given = os.environ.get(_VARIABLE, name)
    if given != name:
        raise ConfigError(
            f"The environment variable {_VARIABLE} is {shown(given)}, but the "
            f"backend of this command is `{name}`. Unset the variable, or "
            "train and evaluate with --backend=jax."
        )


def _check_imported(name: str) -> None:
    import keras

    used = keras.backend.backend()
    if used != name:
        raise ConfigError(
            f"`backend` is `{name}`, but Keras is already imported with "
            f"`{used}`, which cannot be changed within a process. Set the "
            f"environment variable {_VARIABLE}={name} before Keras is "
            "imported, or start a new process."
        )


def _check_installed(name: str) -> None:
    if importlib.util.find_spec(name) is None:
        raise ConfigError(
            f"--backend={name} needs the package `{name}`, which is not "
            f"installed: pip install 'tf_adapters[{name}]'"
        )
