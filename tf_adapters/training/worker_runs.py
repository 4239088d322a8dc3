"""The run folder as each worker has it: the chief's, or one to listen to."""

import json
from pathlib import Path

import safetensors.numpy

from tf_adapters.training import workers
from tf_adapters.training.checkpoints import Checkpoint
from tf_adapters.training.runs import RunFolder


def open_run(strategy, folder, *arguments):
    """Returns the `RunFolder` on the chief, a `Follower` on other workers.

    Args:
        strategy: `tf.distribute.Strategy`.
        folder: Path. Only the chief reads and writes it.
        *arguments: Those of `RunFolder` after the folder.
    """
    if workers.count(strategy) == 1:
        return RunFolder(folder, *arguments)
    if not workers.is_chief(strategy):
        return Follower(folder, _exchange(strategy, None))
    run = RunFolder(folder, *arguments)
    _exchange(strategy, run.checkpoint)
    return run


def _exchange(strategy, checkpoint):
    """Returns the chief's checkpoint on every worker."""
    facts = tensors = b""
    if checkpoint is not None:
        facts = json.dumps([checkpoint.step, checkpoint.state]).encode()
        tensors = safetensors.numpy.save(checkpoint.tensors)
    facts = workers.from_chief(strategy, facts)
    tensors = workers.from_chief(strategy, tensors)
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

    def save_text(self, name, text):
        """Leaves it to the chief."""

    def save_adapter(self, model, details):
        """Leaves it to the chief."""

    def save_checkpoint(self, step, tensors, state):
        """Leaves it to the chief."""

    def save_result(self, result):
        """Leaves it to the chief."""
