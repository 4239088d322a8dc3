"""Reads many damaged inputs in a process of its own, under limits.

The process is forked from one with all imports, before TensorFlow starts its
threads. If it dies or hangs, the input is a fault, and another process reads
the next one.
"""

import contextlib
import dataclasses
import logging
import multiprocessing
import os
from pathlib import Path
import re
import tempfile
import time
import warnings

from tests.fuzz import damage as damage_lib
from tests.fuzz import trial
from tests.fuzz.readers import READERS

CASES = Path(__file__).parent / "cases"
_FORK = multiprocessing.get_context("fork")
_CHECK_EVERY = 500
_KEPT = 10


@dataclasses.dataclass
class Count:
    """How many inputs of a reader were refused, read, or faults."""

    inputs: int = 0
    refused: int = 0
    read: int = 0
    faults: int = 0


class _Progress:
    """Numbers that a worker shares with its parent."""

    def __init__(self):
        self.values = _FORK.RawArray("q", [0, 0, 0, 0])

    @property
    def number(self):
        return self.values[0]

    def add(self, outcome):
        self.values[outcome] += 1
        self.values[0] += 1


_READ, _REFUSED, _FAULT = 1, 2, 3


def run(name, inputs, seconds, seed=0, cases=CASES):
    """Returns the `Count` of a reader.

    Args:
        name: Key of `READERS`.
        inputs: How many inputs to read.
        seconds: Time after which to stop, even if there are more inputs.
        seed: Integer. The same seed gives the same inputs.
        cases: Folder for the inputs with faults.
    """
    progress, end = _Progress(), time.monotonic() + seconds
    while progress.number < inputs and time.monotonic() < end:
        with tempfile.TemporaryDirectory() as scratch:
            job = (name, seed, inputs, end, progress, Path(scratch), cases)
            ended_alone = _run_worker(job, progress)
            if not ended_alone and not (Path(scratch) / "made").exists():
                raise RuntimeError(f"{name}: the undamaged folder is not read")
            if not ended_alone:
                whole = Path(scratch) / "whole"
                key = f"{seed}-{progress.number}"
                damages = trial.damages(READERS[name], whole, key)
                keep(cases, name, key, damages, "it died or hung")
                progress.add(_FAULT)
    values = progress.values
    return Count(values[0], values[_REFUSED], values[_READ], values[_FAULT])


def _run_worker(job, progress):
    """Returns whether the worker ended by itself."""
    process = _FORK.Process(target=_work, args=job)
    process.start()
    before, since = -1, time.monotonic()
    while process.is_alive():
        process.join(timeout=0.2)
        if progress.number != before:
            before, since = progress.number, time.monotonic()
        elif time.monotonic() - since > 3 * trial.SECONDS:
            process.kill()
            process.join()
    return process.exitcode == 0


def _work(name, seed, inputs, end, progress, scratch, cases):
    logging.disable()  # Each damaged checkpoint is a warning.
    warnings.simplefilter("ignore")
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        folder = trial.Folder(READERS[name], scratch)
        trial.limit_memory()
        (scratch / "made").touch()
        while progress.number < inputs and time.monotonic() < end:
            key = f"{seed}-{progress.number}"
            progress.add(_outcome(folder, name, key, cases))
            if progress.number % _CHECK_EVERY == 0:
                folder.check_undamaged()


def _outcome(folder, name, key, cases):
    damages = folder.damages(key)
    try:
        return _READ if folder.read(damages) else _REFUSED
    except trial.FaultError as fault:
        keep(cases, name, key, damages, str(fault))
        return _FAULT


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
