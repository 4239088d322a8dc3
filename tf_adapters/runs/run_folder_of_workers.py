"""Run folders of distributed runs: only the first worker, the chief, writes."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
import json
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import safetensors.numpy

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.runs import earlier_runs
from tf_adapters.runs.checkpoints import Checkpoint
from tf_adapters.runs.run_folder import RunFolder
from tf_adapters.training import workers

if TYPE_CHECKING:
    import numpy as np
    import tensorflow as tf

    from tf_adapters.config.settings import Config


def open_run(
    strategy: Any,
    folder: Any,
    *arguments: Any,
    **options: Any,
) -> Any:
    """Opens the run folder of a distributed run, on every worker.

    Returns a `RunFolder` on the chief, which is the worker that writes the
    run's files. Returns a `Follower` on other workers.

    Args:
        strategy: `tf.distribute.Strategy`.
        folder: Path. Only the chief reads and writes it.
        *arguments: Further positional arguments of `RunFolder`.
        **options: Keyword arguments of `RunFolder`.

    Raises:
        UserError: On every worker, if the chief cannot use the folder.
    """
    run = on_chief(strategy, lambda: RunFolder(folder, *arguments, **options))
    if workers.num_workers(strategy) == 1:
        return run
    checkpoint = _exchange(strategy, run and run.checkpoint)
    return run or Follower(folder, checkpoint)


def finished_on_chief(
    strategy: tf.distribute.Strategy,
    folder: Path,
    config: Config,
    data_fingerprint: Any,
) -> Any:
    """Returns the result of a finished run on every worker, or `None`.

    The chief reads the result with `earlier_runs.finished_result` and sends it
    to the other workers, which may not be able to read the folder. Without the
    result, they would train, and wait for a chief that has already ended.

    Args:
        strategy: `tf.distribute.Strategy`.
        folder: Path. Only the chief reads it.
        config: `Config`.
        data_fingerprint: See `RunFolder`.
    """
    return from_chief(
        strategy,
        lambda: earlier_runs.finished_result(folder, config, data_fingerprint),
    )


def from_chief(
    strategy: tf.distribute.Strategy, function: Callable[..., Any]
) -> Any:
    """Calls a function without arguments on the chief only.

    Returns:
        The function's return value, on every worker. With several workers, the
        value must be of types that JSON has.

    Raises:
        UserError: On every worker, if the function raises this error.
    """
    value = on_chief(strategy, function)
    if workers.num_workers(strategy) == 1:
        return value
    content = json.dumps(value).encode()
    value = json.loads(workers.broadcast_from_chief(strategy, content))
    # No worker may end before the others have the value.
    workers.wait_for_all(strategy)
    return value


def on_chief(
    strategy: tf.distribute.Strategy, function: Callable[..., Any]
) -> Any:
    """Calls a function without arguments, on the chief only.

    Every worker must call this function.

    Args:
        strategy: `tf.distribute.Strategy`.
        function: Function to call. Its value may be of any type.

    Returns:
        The function's return value on the chief, `None` on other workers.

    Raises:
        UserError: On every worker, if the function raises this error.
    """
    if workers.num_workers(strategy) == 1:
        return function()
    if not workers.is_chief(strategy):
        _tell_refusal(strategy)
        return None
    try:
        value = function()
    except UserError as error:
        # Otherwise other workers would only see that the chief is lost, and a
        # scheduler would restart them in vain.
        _tell_refusal(strategy, str(error))
        raise
    _tell_refusal(strategy)
    return value


def _tell_refusal(strategy: tf.distribute.Strategy, refusal: str = "") -> None:
    """Sends the chief's error message, or "", to the other workers.

    Every worker must call this function. `refusal` is the message on the chief.

    Raises:
        ConfigError: On the other workers, if the message is not empty.
    """
    told = workers.broadcast_from_chief(strategy, refusal.encode()).decode()
    if told and not refusal:
        raise ConfigError(f"On the chief: {told}")


def _exchange(
    strategy: tf.distribute.Strategy, checkpoint: Any
) -> Checkpoint | None:
    """Sends the chief's checkpoint to all workers; returns it on each of them.

    On other workers, the argument `checkpoint` is ignored.
    """
    facts = tensors = b""
    if checkpoint is not None:
        facts = json.dumps([checkpoint.step, checkpoint.state]).encode()
        tensors = safetensors.numpy.save(checkpoint.tensors)
    facts = workers.broadcast_from_chief(strategy, facts)
    tensors = workers.broadcast_from_chief(strategy, tensors)
    if not facts:
        return None
    step, state = json.loads(facts)
    return Checkpoint(step, safetensors.numpy.load(tensors), state)


class Follower:
    """Replaces `RunFolder` on workers other than the chief. Writes no files.

    Args:
        folder: Path of the run folder.
        checkpoint: `Checkpoint` to resume from, or `None`.
    """

    restored = ()

    def __init__(self, folder: Path, checkpoint: Checkpoint | None) -> None:
        self.folder = Path(folder)
        self.checkpoint = checkpoint

    def log(self, record: dict[str, Any]) -> None:
        """Does nothing, because only the chief writes."""

    def save_tables(self, paths: Iterable[Any]) -> None:
        """Does nothing, because only the chief writes."""

    def save_text(self, name: str, text: str) -> None:
        """Does nothing, because only the chief writes."""

    def save_adapter(self, model: Any, details: dict[str, Any]) -> None:
        """Does nothing, because only the chief writes."""

    def save_snapshot(
        self, model: Any, step: int, details: dict[str, Any]
    ) -> None:
        """Does nothing, because only the chief writes."""

    def save_predictions(
        self, split: str, head: Any, compared: dict[str, Any]
    ) -> None:
        """Does nothing, because only the chief writes."""

    def save_checkpoint(
        self, step: int, tensors: dict[str, np.ndarray], state: dict[str, Any]
    ) -> None:
        """Does nothing, because only the chief writes."""

    def save_result(self, result: dict[str, Any]) -> None:
        """Does nothing, because only the chief writes."""

    def close(self) -> None:
        """Does nothing, because only the chief locks the folder."""
