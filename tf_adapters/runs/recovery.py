"""When a run writes checkpoints, and how it is asked to stop."""

import contextlib
import signal
import time

from tf_adapters.common.errors import NonFiniteError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.sigterm import on_sigterm
from tf_adapters.training import workers


class Recovery:
    """Writes a loop's checkpoints, and stops it when the process is told to.

    Args:
        run: `RunFolder`.
        seconds: Least time between two checkpoints.
        strategy: `tf.distribute.Strategy` that it trains under.
    """

    def __init__(self, run, seconds, strategy):
        self.run = run
        self.strategy = strategy
        self.seconds = seconds
        self.last = time.monotonic()
        self.signal = None

    @property
    def checkpoint(self):
        """Where an earlier process was, or `None`."""
        return self.run.checkpoint

    def after_loop(self, progress, trainer, checks):
        """Writes a checkpoint if it is time.

        Args:
            progress: `Progress`.
            trainer: See `TrainerProtocol`.
            checks: Whether the host looks at the losses now.

        Raises:
            Stopped: If the process was told to stop; the checkpoint is written.
            NonFiniteError: If a loss, a gradient or a weight is not finite;
                no checkpoint is written.
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
            return  # The next check ends all workers, which may not be due.
        self.run.save_checkpoint(
            progress.step, tensors, {**state, "stopped": stops}
        )
        self.last = time.monotonic()
        if stops:
            raise Stopped(
                f"Stopped by {self.signal or 'another worker'} after step "
                f"{progress.step}. The same command goes on from there."
            )

    def _stops(self, checks):
        """Returns whether to stop now, on all workers alike."""
        if workers.num_workers(self.strategy) == 1:
            return self.signal is not None
        # To ask costs a message to each, and must be at the same step on all.
        return checks and workers.any_of(self.strategy, self.signal is not None)

    @contextlib.contextmanager
    def listening(self):
        """Takes SIGTERM as the wish to stop after the step at hand."""

        def remember(number, frame):
            self.signal = signal.Signals(number).name

        with on_sigterm(remember):
            yield
