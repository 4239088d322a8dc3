"""Reads many damaged inputs in a process of its own, under limits.

The process is forked from one with all imports, before TensorFlow starts its
threads, and works in memory. If it dies or hangs, the input is a fault, and
another process reads the next one.
"""

import contextlib
import gc
import logging
import multiprocessing
import os
from pathlib import Path
import re
import signal
import tempfile
import time
import warnings

from tests.fuzz import damage as damage_lib
from tests.fuzz import outcomes as outcomes_lib
from tests.fuzz import trial
from tests.fuzz.readers import READERS

CASES = Path(__file__).parent / "cases"
_FORK = multiprocessing.get_context("fork")
_MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None
_CHECK_EVERY = 500
_KEPT = 10


def run(name, outcomes, inputs, seconds, seed=0, cases=CASES):
    """Reads the inputs of a reader that were not read, or were faults.

    Args:
        name: Key of `READERS`.
        outcomes: `Outcomes` of this reader and seed, to which it adds.
        inputs: How many inputs there are.
        seconds: Time after which to stop, even if inputs are left.
        seed: Integer. The same seed gives the same inputs.
        cases: Folder for the inputs with faults.
    """
    numbers, end = outcomes.left(inputs), time.monotonic() + seconds
    while numbers and time.monotonic() < end:
        with tempfile.TemporaryDirectory(dir=_MEMORY) as scratch:
            scratch = Path(scratch)
            job = (name, seed, numbers, end, outcomes, scratch, cases)
            if _run_worker(job, outcomes):
                return
            number = outcomes.under_way()
            if not (scratch / "made").exists() or number is None:
                raise RuntimeError(f"{name}: the undamaged folder is not read")
            key = f"{seed}-{number}"
            damages = trial.damages(READERS[name], scratch / "whole", key)
        keep(cases, name, key, damages, "it died or hung")
        outcomes.note(number, outcomes_lib.FAULT)
        numbers = numbers[numbers.index(number) + 1 :]


def _run_worker(job, outcomes):
    """Returns whether the worker ended by itself."""
    process = _FORK.Process(target=_work, args=job, daemon=True)
    process.start()
    before, since = 0, time.monotonic()
    while process.is_alive():
        process.join(timeout=0.2)
        if outcomes.changed() != before:
            before, since = outcomes.changed(), time.monotonic()
        elif time.monotonic() - since > 2 * trial.BLOCKED_SECONDS:
            process.kill()
            process.join()
    return process.exitcode == 0


def _work(name, seed, numbers, end, outcomes, scratch, cases):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    logging.disable()  # Each damaged checkpoint is a warning.
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        folder = trial.Folder(READERS[name], scratch)
        gc.freeze()  # A million objects of modules are not looked through.
        trial.limit_memory()
        (scratch / "made").touch()
        for number in numbers:
            if time.monotonic() > end:
                return
            outcomes.begin(number)
            is_checked = number % _CHECK_EVERY == _CHECK_EVERY - 1
            outcome = _outcome(
                folder, name, f"{seed}-{number}", is_checked, cases
            )
            outcomes.note(number, outcome)


def _outcome(folder, name, key, is_checked, cases):
    damages = folder.damages(key)
    try:
        is_read = folder.read(damages)
        if is_checked:
            folder.check_undamaged()
        return outcomes_lib.READ if is_read else outcomes_lib.REFUSED
    except trial.FaultError as fault:
        keep(cases, name, key, damages, str(fault))
        return outcomes_lib.FAULT


def folder_of(cases, name):
    """Returns the folder with the kept inputs of a reader."""
    return cases / "".join(c if c.isalnum() else "_" for c in name)


def keep(cases, name, key, damages, why):
    """Writes one of the first inputs with faults, to be read again."""
    folder = folder_of(cases, name)
    folder.mkdir(parents=True, exist_ok=True)
    if len(list(folder.iterdir())) >= _KEPT:
        return
    # The path of the damaged folder says nothing, and differs each time.
    why = re.sub(r"/\S*?/copy\b", "FOLDER", why)[:200]
    text = damage_lib.to_json(name, why, damages)
    (folder / f"{key}.json").write_text(text)
