"""Says in a sentence what to change if a device cannot compute a step."""

from collections.abc import Iterator
import contextlib
import re

import tensorflow as tf

from tf_adapters.common.errors import ConfigError

_NOT_DETERMINISTIC = re.compile("determinis", re.IGNORECASE)
# Parts of TensorFlow's messages about graphs that XLA refuses.
_NOT_COMPILED = re.compile(
    "XLA|tf2xla|compile-time constant|unsupported operations", re.IGNORECASE
)

# Name of a graph's node in such a message.
_NODE = re.compile(r"{{[^}]*}}")


@contextlib.contextmanager
def explained(
    memory_advice: str, deterministic: bool | None, compiles: bool
) -> Iterator[None]:
    """Context manager that replaces errors which a setting can avoid.

    Args:
        memory_advice: From the function `memory_advice`.
        deterministic: The setting `train.deterministic`.
        compiles: Whether XLA compiles the steps.

    Raises:
        ConfigError: If the device has no memory left, if an operation has no
            deterministic kernel, or if XLA cannot compile the step. Names the
            settings to change.
    """
    try:
        yield
    except (tf.errors.OpError, RuntimeError, ValueError) as error:
        sentence = _sentence(error, memory_advice, deterministic, compiles)
        if sentence is None:
            raise
        raise ConfigError(sentence) from error


def memory_advice(
    batch_size: int,
    eval_batch_size: int,
    accumulation_steps: int,
    remat: bool,
    precision: str,
) -> str:
    """Says which settings to change if a device has no memory left.

    The arguments are the current values of the settings in `TrainConfig`.
    """
    return (
        f"Lower --batch_size (now {batch_size}; in evaluation, "
        f"train.eval_batch_size, now {eval_batch_size}), raise "
        f"train.accumulation_steps (now {accumulation_steps}), or set "
        f"train.remat=true (now {str(remat).lower()}) or "
        f"--precision=mixed_bfloat16 (now {precision})."
    )


def _sentence(
    error: Exception,
    memory_advice: str,
    deterministic: bool | None,
    compiles: bool,
) -> str | None:
    """Returns the message for an error, or `None` if no setting avoids it.

    See `explained` for the arguments.
    """
    if isinstance(error, ConfigError):
        return None
    reason = _first_line(error)
    if _is_out_of_memory(error):
        return (
            f"The memory of the device does not suffice: {reason} "
            f"{memory_advice}"
        )
    if deterministic and _NOT_DETERMINISTIC.search(str(error)):
        return (
            "`train.deterministic` is true, and an operation has no "
            f"deterministic kernel on this device: {reason} Set "
            "train.deterministic=false."
        )
    if compiles and _NOT_COMPILED.search(str(error)):
        return (
            f"XLA cannot compile a step of this model: {reason} Set "
            "train.jit_compile=false. A TPU runs compiled steps only."
        )
    return None


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, tf.errors.ResourceExhaustedError):
        return True
    # JAX raises the same error for all problems of a device.
    return str(error).startswith("RESOURCE_EXHAUSTED")


def _first_line(error: Exception) -> str:
    """Returns the first line of an error's message, as a sentence."""
    message = getattr(error, "message", None) or str(error)
    line = _NODE.sub("", message).strip().splitlines()[0]
    return line if line.endswith(".") else f"{line}."
