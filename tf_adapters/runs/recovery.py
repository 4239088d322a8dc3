"""Decides when a run writes checkpoints, and stops the run on a signal."""

from __future__ import annotations

from collections.abc import Iterator
import contextlib
import signal
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.sigterm import on_sigterm
from tf_adapters.training import workers

if TYPE_CHECKING:
    import tensorflow as tf

    from tf_adapters.runs.run_folder import RunFolder


class Recovery:
    """Writes a training loop's checkpoints, and stops the loop on SIGTERM.

    Args:
        run: `RunFolder`.
        seconds: Minimum time between two checkpoints, in seconds.
        strategy: `tf.distribute.Strategy` of the training.
    """

    def __init__(
        self, run: RunFolder, seconds: float, strategy: tf.distribute.Strategy
    ) -> None:
        self.run = run
        self.strategy = strategy
        self.seconds = seconds
        self.last = time.monotonic()
        self.signal = None

    @property
    def checkpoint(self) -> Any:
        """The `Checkpoint` of an earlier process to resume from, or `None`."""
        return self.run.checkpoint

    def after_loop(self, progress: Any, trainer: Any, checks: bool) -> None:
        """Writes a checkpoint if one is due or the process was asked to stop.

        Args:
            progress: `Progress`.
            trainer: See `TrainerProtocol`.
            checks: Whether the losses are checked at this step. Only at such
                a step do workers ask each other whether to stop.

        Raises:
            Stopped: After the checkpoint, if the process was asked to stop.
            NonFiniteError: If a loss, a gradient or a weight is not finite. No
                checkpoint is written.
        """
        due = time.monotonic() - self.last >= self.seconds
        stops = self._stops(checks)
        if not due and not stops:
            return
        try:
            tensors, state = progress.write(trainer)
        except NonFiniteError:
            if stops or workers.num_workers(self.strategy) == 1:
                raise
            return  # The next check stops all workers, not only this one.
        self.run.save_checkpoint(
            progress.step, tensors, {**state, "stopped": stops}
        )
        self.last = time.monotonic()
        if stops:
            raise Stopped(
                f"Stopped by {self.signal or 'another worker'} after step "
                f"{progress.step}. The same command resumes from there."
            )

    def _stops(self, checks: Any) -> bool:
        """Returns whether to stop now. All workers get the same answer.

        See `after_loop` for `checks`.
        """
        if workers.num_workers(self.strategy) == 1:
            return self.signal is not None
        # Asking costs messages, and all workers must ask at the same step.
        return checks and workers.any_of(self.strategy, self.signal is not None)

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Context manager: SIGTERM stops training after the current step."""

        def remember(number: int, frame: Any) -> None:
            self.signal = signal.Signals(number).name

        with on_sigterm(remember):
            yield
