"""Handling of SIGTERM, the signal that asks a process to end."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def on_sigterm(handle):
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
