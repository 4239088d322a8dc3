"""The run folder as each worker has it: the chief's, or one to listen to."""

import json
from pathlib import Path

import safetensors.numpy

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.runs import earlier_runs
from tf_adapters.runs.checkpoints import Checkpoint
from tf_adapters.runs.run_folder import RunFolder
from tf_adapters.training import workers


def open_run(strategy, folder, *arguments, **options):
    """Returns the `RunFolder` on the chief, a `Follower` on other workers.

    Args:
        strategy: `tf.distribute.Strategy`.
        folder: Path. Only the chief reads and writes it.
        *arguments: Those of `RunFolder` after the folder.
        **options: The same.

    Raises:
        UserError: On every worker, where the chief may not have the folder.
    """
    run = _on_chief(strategy, lambda: RunFolder(folder, *arguments, **options))
    if workers.num_workers(strategy) == 1:
        return run
    checkpoint = _exchange(strategy, run and run.checkpoint)
    return run or Follower(folder, checkpoint)


def finished(strategy, folder, config, data_fingerprint):
    """Returns what `earlier_runs.finished` does on the chief, on every worker.

    Others may have no such folder, and would wait for a chief that has ended.

    Args:
        strategy: `tf.distribute.Strategy`.
        folder: Path. Only the chief reads it.
        config: `Config`.
        data_fingerprint: See `RunFolder`.
    """
    result = _on_chief(
        strategy,
        lambda: earlier_runs.finished(folder, config, data_fingerprint),
    )
    if workers.num_workers(strategy) == 1:
        return result
    content = json.dumps(result).encode()
    result = json.loads(workers.broadcast_from_chief(strategy, content))
    # None may end before the others have it.
    workers.wait_for_all(strategy)
    return result


def _on_chief(strategy, function):
    """Returns what a function returns on the chief, `None` on other workers.

    Raises:
        UserError: On every worker, where the function raises one.
    """
    if workers.num_workers(strategy) == 1:
        return function()
    if not workers.is_chief(strategy):
        _tell_refusal(strategy)
        return None
    try:
        value = function()
    except UserError as error:
        # The others would lose the chief, and be started again for nothing.
        _tell_refusal(strategy, str(error))
        raise
    _tell_refusal(strategy)
    return value


def _tell_refusal(strategy, refusal=""):
    """Raises on the other workers why the chief may not have the folder."""
    told = workers.broadcast_from_chief(strategy, refusal.encode()).decode()
    if told and not refusal:
        raise ConfigError(f"The chief's run folder: {told}")


def _exchange(strategy, checkpoint):
    """Returns the chief's checkpoint on every worker."""
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
    """A run folder that another worker writes.

    Args:
        folder: Path.
        checkpoint: `Checkpoint` to go on from, or `None`.
    """

    restored = ()

    def __init__(self, folder, checkpoint):
        self.folder = Path(folder)
        self.checkpoint = checkpoint

    def log(self, record):
        """Leaves it to the chief."""

    def save_tables(self, paths):
        """Leaves it to the chief."""

    def save_text(self, name, text):
        """Leaves it to the chief."""

    def save_adapter(self, model, details):
        """Leaves it to the chief."""

    def save_snapshot(self, model, step, details):
        """Leaves it to the chief."""

    def save_predictions(self, split, head, compared):
        """Leaves it to the chief."""

    def save_checkpoint(self, step, tensors, state):
        """Leaves it to the chief."""

    def save_result(self, result):
        """Leaves it to the chief."""
