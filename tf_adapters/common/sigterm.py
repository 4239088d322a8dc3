"""What a process does when it is told to end."""

import contextlib
import signal
import threading


@contextlib.contextmanager
def on_sigterm(handle):
    """Calls a function at SIGTERM, in place of ending the process.

    Args:
        handle: Function of the signal's number and the frame, as Python's.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Only the main thread hears of signals.
        return
    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
