"""One input of a fuzzer: a damaged folder is read, and the result judged."""

import contextlib
import random
import resource
import shutil
import signal

from tests.fuzz import damage as damage_lib
from tests.fuzz import damaging
from tests.fuzz.reader import digest
from tf_adapters.common.errors import UserError

# Of the processor: other programs on the machine do not count.
SECONDS = 20
# Of the clock, for a reader that waits.
BLOCKED_SECONDS = 120
_BYTES = 2 << 30
# A message repeats 200 characters of a value, and ten rows of many.
_LONGEST_MESSAGE = 5000


class FaultError(Exception):
    """What a reader must not do."""


class _TimeLimit(BaseException):
    """Not an `Exception`, so that no reader catches it."""


def _stop(signum, frame):
    raise _TimeLimit


@contextlib.contextmanager
def _limits():
    """Ends what takes longer than `SECONDS`, or `BLOCKED_SECONDS`."""
    for kind in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(kind, _stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, BLOCKED_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


def limit_memory():
    """Makes allocations of this process fail beyond 2 GB more than now."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[5])
    most = pages * resource.getpagesize() + _BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def damages(reader, whole, key):
    """Returns the list of `Damage` of an input; the same for the same key.

    Args:
        reader: `Reader`.
        whole: Path of its undamaged folder.
        key: String.
    """
    return damaging.draw(whole, random.Random(key), reader.special)


class Folder:
    """An undamaged folder and the copy that is damaged and read.

    Args:
        reader: `Reader`.
        scratch: Path of an empty folder.
    """

    def __init__(self, reader, scratch):
        self.reader = reader
        self.whole, self.copy = scratch / "whole", scratch / "copy"
        self.whole.mkdir()
        reader.make(self.whole)
        self._copy_all()
        self.answer = digest(reader.read(self.copy))
        self._copy_all()

    def _copy_all(self):
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self.whole, self.copy)

    def damages(self, key):
        """Returns the list of `Damage` of an input; see `damages`."""
        return damages(self.reader, self.whole, key)

    def read(self, damages):
        """Returns whether the damaged folder was read, and not refused.

        Raises:
            FaultError: If the reader did anything else, or its answer is wrong.
        """
        for damage in damages:
            damage.apply(self.copy)
        try:
            with _limits():
                answer = digest(self.reader.read(self.copy))
        except UserError as error:
            _check_message(str(error))
            return False
        except _TimeLimit as error:
            raise FaultError(f"longer than {SECONDS} seconds") from error
        except BaseException as error:
            raise FaultError(
                f"{type(error).__name__}: {error!s:.300}"
            ) from error
        finally:
            self._restore(damages)
        if self._must_equal(damages) and answer != self.answer:
            raise FaultError("the answer is not that of the undamaged files")
        return True

    def check_undamaged(self):
        """Raises an error if earlier inputs changed how files are read."""
        if digest(self.reader.read(self.copy)) != self.answer:
            raise FaultError("undamaged files are read differently now")
        self._restore([])

    def _must_equal(self, damages):
        return all(
            damage.harmless or damage.file in self.reader.sealed
            for damage in damages
        )

    def _restore(self, damages):
        if self.reader.writes:
            self._copy_all()
        else:
            damage_lib.restore(self.copy, self.whole, damages)


def _check_message(text):
    if not text.strip() or len(text) > _LONGEST_MESSAGE:
        raise FaultError(f"a message of {len(text)} characters: {text:.200}")
    if "Traceback" in text:
        raise FaultError(f"a traceback in a message: {text:.200}")
