"""One trial: a run with faults ends like the same run without any."""

import hashlib
import random
import shutil
import time
import traceback

from tests.runs import whole_runs
from tests.soak import settings
from tests.soak.faults import FAULTS
from tests.soak.process import Command


class Run:
    """A run's command and folder.

    Attributes:
        folder: Path of its folder.
        seconds: How long it takes if nothing disturbs it.
    """

    def __init__(self, arguments, folder, data, seconds=0.0):
        self.folder, self.seconds = folder, seconds
        self._arguments = [
            *arguments,
            f"--data_dir={data}",
            f"--model_dir={folder}",
            "--params_override=train.checkpoint_seconds=0",
        ]
        self._log = folder.with_name(f"{folder.name}.log")

    def start(self, before=None):
        """Starts the command; see `Command`."""
        return Command(self._arguments, self._log, before)

    def finish(self):
        """Runs the command to its end."""
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
    arguments = settings.draw(chance)
    faults = chance.choices(list(FAULTS), k=chance.choice((1, 2, 3)))
    started = time.monotonic()
    record = {"number": number, "seed": seed, "faults": faults, "wrong": None}
    try:
        whole = _whole(arguments, space)
        record["wrong"] = _disturb(arguments, faults, whole, space, chance)
    except Exception:
        record["wrong"] = traceback.format_exc()[-3000:]
    record["seconds"] = round(time.monotonic() - started, 1)
    return {**record, "flags": arguments[:2]}


def _whole(arguments, space):
    """Returns the undisturbed run of these flags, which is kept."""
    name = hashlib.sha256(repr(arguments).encode()).hexdigest()[:16]
    run = Run(arguments, space / "whole" / name, space / "data")
    if not (run.folder / "result.json").exists():
        shutil.rmtree(run.folder, ignore_errors=True)
        run.folder.parent.mkdir(exist_ok=True)
        run.finish()
    times = [path.stat().st_mtime for path in run.folder.iterdir()]
    run.seconds = max(times) - min(times) + 1
    return run


def _disturb(arguments, faults, whole, space, chance):
    """Returns what is wrong after the faults, or `None`."""
    folder = space / "trial" / "run"
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder.parent.mkdir()
    run = Run(arguments, folder, space / "data", whole.seconds)
    for name in faults:
        wrong = FAULTS[name](run, chance)
        if wrong:
            return f"{name}: {wrong}"
    run.finish()
    whole_runs.check_equal(run.folder, whole.folder)
    return None
