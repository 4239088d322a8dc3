"""When a run writes checkpoints, and how it is asked to stop."""

import contextlib
import signal
import threading
import time

from tf_adapters.training import progress
from tf_adapters.training.loop import Stopped


class Recovery:
    """Writes a loop's checkpoints, and stops it when the process is told to.

    Args:
        run: `RunFolder`.
        seconds: Least time between two checkpoints.
    """

    def __init__(self, run, seconds):
        self.run = run
        self.seconds = seconds
        self.last = time.monotonic()
        self.signal = None

    @property
    def checkpoint(self):
        """Where an earlier process was, or `None`."""
        return self.run.checkpoint

    def after_step(self, loop):
        """Writes a checkpoint if it is time.

        Raises:
            Stopped: If the process was told to stop; the checkpoint is written.
        """
        due = time.monotonic() - self.last >= self.seconds
        if not due and self.signal is None:
            return
        tensors = progress.tensors(loop)
        self.run.save_checkpoint(loop.step, tensors, progress.state(loop))
        self.last = time.monotonic()
        if self.signal is not None:
            raise Stopped(
                f"Stopped by {self.signal} after step {loop.step}. The same "
                "command goes on from there."
            )

    @contextlib.contextmanager
    def listening(self):
        """Takes SIGTERM as the wish to stop after the step at hand."""
        if threading.current_thread() is not threading.main_thread():
            yield  # Only the main thread hears of signals.
            return

        def remember(number, frame):
            self.signal = signal.Signals(number).name

        before = signal.signal(signal.SIGTERM, remember)
        try:
            yield
        finally:
            signal.signal(signal.SIGTERM, before)
