"""One trial: a run with faults ends like the same run without any."""

import functools
import hashlib
from pathlib import Path
import random
import shutil
import time
import traceback

from tests.soak import kinds
from tests.soak.process import Command
import tf_adapters


class Run:
    """A run's program and folder.

    Attributes:
        folder: Path of its folder.
        seconds: How long it takes if nothing disturbs it.
    """

    def __init__(self, kind, arguments, folder, data, seconds=0.0):
        self.folder, self.seconds = folder, seconds
        self._program = kind.program(arguments, folder, data)
        self._log = folder.with_name(f"{folder.name}.log")

    def start(self, before=None):
        """Starts the program; see `Command`."""
        return Command(self._program, self._log, before)

    def finish(self):
        """Runs the program to its end."""
        status, said = self.start().wait()
        if status != 0:
            raise AssertionError(f"status {status}: {said[-1500:]}")


def run(number, seed, space):
    """Returns a dict with what was tried and whether the run ended the same.

    Args:
        number: Number of the trial.
        seed: Integer. Number and seed say all that is drawn.
        space: Path of a folder for data and undisturbed runs.
    """
    chance = random.Random(f"{seed} {number}")
    kind = kinds.kind_of(number)
    arguments = kind.draw(chance)
    faults = chance.choices(list(kind.faults), k=chance.choice((1, 2, 3)))
    started = time.monotonic()
    record = {"number": number, "seed": seed, "faults": faults, "wrong": None}
    try:
        whole = _whole(kind, arguments, space)
        record["wrong"] = _disturb(
            kind, arguments, faults, whole, space, chance
        )
    except Exception:
        record["wrong"] = traceback.format_exc()[-3000:]
    record["seconds"] = round(time.monotonic() - started, 1)
    return {**record, "flags": arguments[:2]}


def _whole(kind, arguments, space):
    """Returns the undisturbed run of these flags, kept for this source code."""
    name = repr((arguments, _source_hash())).encode()
    name = hashlib.sha256(name).hexdigest()[:16]
    run = Run(kind, arguments, space / "whole" / name, space / "data")
    if not (run.folder / "result.json").exists():
        shutil.rmtree(run.folder, ignore_errors=True)
        run.folder.parent.mkdir(exist_ok=True)
        run.finish()
    times = [path.stat().st_mtime for path in run.folder.iterdir()]
    run.seconds = max(times) - min(times) + 1
    return run


@functools.cache
def _source_hash():
    folder = Path(tf_adapters.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(path.read_bytes())
    return found.hexdigest()


def _disturb(kind, arguments, faults, whole, space, chance):
    """Returns what is wrong after the faults, or `None`."""
    folder = space / "trial" / "run"
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.parent.mkdir()
    run = Run(kind, arguments, folder, space / "data", whole.seconds)
    for name in faults:
        wrong = kind.faults[name](run, chance)
        if wrong:
            return f"{name}: {wrong}"
        kind.check_left(run.folder, whole.folder)
    run.finish()
    kind.check(run.folder, whole.folder)
    return None
