"""Says in a sentence what to change if a device cannot compute a step."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import errno
import os
import re
from typing import TYPE_CHECKING

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    from tf_adapters.config.settings import TrainConfig

_NO_MEMORY = re.compile("OOM|(?i:memory|exhausted)")
_NOT_DETERMINISTIC = re.compile("determinis", re.IGNORECASE)
# Parts of TensorFlow's messages about graphs that XLA refuses.
_NOT_COMPILED = re.compile(
    r"\bXLA|tf2xla|compile-time constant|[uU]nsupported operations"
)
# Names of TensorFlow's and PyTorch's classes of errors; to import the classes
# would take seconds.
_OUT_OF_MEMORY = {"ResourceExhaustedError", "OutOfMemoryError"}
# Problems of files for which TensorFlow raises the same error.
_OF_FILES = tuple(
    os.strerror(number)
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE)
)
# Name of a graph's node in such a message.
_NODE = re.compile(r"{{[^}]*}}")


class DeviceMemoryError(ConfigError):
    """The memory of the device does not suffice."""


@contextlib.contextmanager
def explained(
    memory_advice: str, deterministic: bool | None, compiles: bool
) -> Iterator[None]:
    """Context manager that replaces errors which a setting can avoid.

    Args:
        memory_advice: Sentence that says what to change if memory runs out, for
            example from the function `memory_advice`.
        deterministic: The setting `train.deterministic`.
        compiles: Whether XLA compiles the steps.

    Raises:
        DeviceMemoryError: If the device has no memory left. Gives the advice.
        ConfigError: If an operation has no deterministic kernel, or if XLA
            cannot compile the step. Names the settings to change.
    """
    try:
        yield
    except Exception as error:  # Each backend has its own classes of errors.
        if not isinstance(error, UserError) and _is_out_of_memory(error):
            raise DeviceMemoryError(
                "The memory of the device does not suffice: "
                f"{_line_about(_NO_MEMORY, error)} {memory_advice}"
            ) from error
        sentence = _sentence(error, deterministic, compiles)
        if sentence is None:
            raise
        raise ConfigError(sentence) from error


def memory_advice(settings: TrainConfig) -> str:
    """Says which settings to change if a device has no memory left."""
    return (
        f"Lower --batch_size (now {settings.batch_size}; in evaluation, "
        f"train.eval_batch_size, now {settings.eval_batch_size}), raise "
        f"train.accumulation_steps (now {settings.accumulation_steps}), or set "
        f"train.remat=true (now {str(settings.remat).lower()}) or "
        f"--precision=mixed_bfloat16 (now {settings.precision})."
    )


def _sentence(
    error: Exception, deterministic: bool | None, compiles: bool
) -> str | None:
    """Returns the message for an error, or `None` if no setting avoids it.

    See `explained` for the arguments.
    """
    if isinstance(error, UserError) or not _is_of_backend(error):
        return None
    if deterministic and _NOT_DETERMINISTIC.search(str(error)):
        return (
            "`train.deterministic` is true, and an operation has no "
            "deterministic kernel on this device: "
            f"{_line_about(_NOT_DETERMINISTIC, error)} Set "
            "train.deterministic=false."
        )
    if compiles and _NOT_COMPILED.search(str(error)):
        return (
            "XLA cannot compile a step of this model: "
            f"{_line_about(_NOT_COMPILED, error)} Set "
            "train.jit_compile=false. A TPU runs compiled steps only."
        )
    return None


def _is_of_backend(error: Exception) -> bool:
    """Returns whether a backend can raise an error while it runs a step."""
    names = {one.__name__ for one in type(error).__mro__}
    return "OpError" in names or isinstance(error, RuntimeError | ValueError)


def _is_out_of_memory(error: Exception) -> bool:
    names = {one.__name__ for one in type(error).__mro__}
    if names & _OUT_OF_MEMORY:
        return not any(problem in str(error) for problem in _OF_FILES)
    # JAX raises the same error for all problems of a device.
    return str(error).startswith("RESOURCE_EXHAUSTED")


def _line_about(pattern: re.Pattern[str], error: Exception) -> str:
    """Returns the line of an error's message that says why, as a sentence.

    That is the first line in which the pattern occurs, and otherwise the first
    line. For an error in a graph, TensorFlow first lists lines of code,
    `File "...", line 1, in call`, which are skipped.
    """
    message = getattr(error, "message", None) or str(error)
    lines = [
        line.strip() for line in _NODE.sub("", message).strip().split("\n")
    ]
    about = (
        line
        for line in lines
        if pattern.search(line) and not line.startswith("File ")
    )
    line = next(about, lines[0])
    return line if line.endswith(".") else f"{line}."
