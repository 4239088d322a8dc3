"""Handling of SIGTERM, the signal that asks a process to end."""

from collections.abc import Callable
from collections.abc import Iterator
import contextlib
import signal
import threading
from types import FrameType
from typing import Any


@contextlib.contextmanager
def on_sigterm(
    handle: Callable[[int, FrameType | None], Any],
) -> Iterator[None]:
    """Calls a function on SIGTERM instead of ending the process.

    In a thread other than the main thread, the context manager has no effect.

    Args:
        handle: Function that takes the signal number and the frame, as for
            `signal.signal`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread can handle signals.
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
