"""Commands as processes that are forked from one with all imports."""

import multiprocessing
import os
import sys

# Imported before the forks: no operation runs, so no thread is started.
from tf_adapters.runs import training_run  # noqa: F401
from tf_adapters.text import text_model  # noqa: F401

_FORK = multiprocessing.get_context("fork")
LIMIT = 240


class HangError(Exception):
    """A command did not end."""


class Command:
    """A program that runs in a session of its own.

    Args:
        program: Function without arguments.
        log: Path of the file for what it prints.
        before: Function that is called first, in the new process.
    """

    def __init__(self, program, log, before=None):
        self._log, self._from = log, log.stat().st_size if log.exists() else 0
        self._process = _FORK.Process(target=_main, args=(program, log, before))
        self._process.start()

    @property
    def pid(self):
        return self._process.pid

    def is_alive(self):
        return self._process.is_alive()

    def send(self, kind):
        """Sends a signal, if the process is there."""
        if self._process.is_alive():
            os.kill(self._process.pid, kind)

    def wait(self):
        """Returns the exit status and what the command printed."""
        self._process.join(LIMIT)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
            raise HangError(f"longer than {LIMIT} seconds")
        said = self._log.read_bytes()[self._from :].decode("utf-8", "replace")
        return self._process.exitcode, said


def _main(program, log, before):
    os.setsid()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    sys.stdout = os.fdopen(1, "w", buffering=1)
    sys.stderr = os.fdopen(2, "w", buffering=1)
    if before is not None:
        before()
    program()
