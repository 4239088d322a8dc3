"""Puts faults into the library, one at a time, and expects a failing test.

`mutants.yaml` has the faults and, for each, the tests that are to find it. The
program copies the project into temporary folders and changes the copies only.

    python tests/mutants/run.py              # All of them.
    python tests/mutants/run.py norms-decay  # Only this one.

Exit status 0: each was found. 1: at least one was not, or cannot be applied.
"""

import argparse
import concurrent.futures
import dataclasses
import importlib
import multiprocessing
import os
from pathlib import Path
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DECLARATIONS = Path(__file__).with_name("mutants.yaml")
PACKAGE = "tf_adapters"
# A selection that takes longer hangs: what a mutant waits for never comes.
SECONDS = 600
# Slow to import, and the same for every mutant. Nothing may run in TensorFlow
# before a worker forks: its threads would be missing in the child.
_IMPORTED_ONCE = ("tensorflow", "keras_hub")
# In pytest's summary; behind the dash is what was wrong.
_FAILED = r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$"
# What a child ends with that tested another package than it should.
_WRONG_PACKAGE = 100


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        name: Short and unique.
        file: Path of a source file in the project.
        old: Part of a line that is there once.
        new: What replaces it.
        tests: Arguments of pytest: the smallest selection that finds it.
        slow: Whether only a test that is marked as slow does.
    """

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    slow: bool = False

    def apply(self, text):
        """Returns the text of the file with the fault in it."""
        count = text.count(self.old)
        if count != 1 or self.old == self.new:
            raise ValueError(f"`old` is in {self.file} {count} times")
        return text.replace(self.old, self.new)


def read_mutants():
    """Returns the `Mutant`s that are declared."""
    entries = yaml.safe_load(DECLARATIONS.read_text(encoding="utf-8"))
    return [Mutant(**{**e, "tests": tuple(e["tests"])}) for e in entries]


def copy_project(folder):
    """Copies what git tracks, or would if it were added, into a folder."""
    command = ["git", "ls-files", "-z", "-co", "--exclude-standard"]
    names = subprocess.run(
        command, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What pytest made of some tests.

    Attributes:
        status: Its exit status, or minus the number of a signal.
        failed: The first test that failed, or `""`.
        output: All that it printed.
        seconds: How long it took.
    """

    status: int
    failed: str
    output: str
    seconds: float


class Worker:
    """A process with a copy of the project of its own."""

    def __init__(self, folder):
        self.folder = Path(tempfile.mkdtemp(dir=folder))
        self.tree = self.folder / "tree"
        copy_project(self.tree)
        os.chdir(self.tree)
        # The checkout may be installed, and bytecode of a file that changes
        # twice within a second is taken for that of the other one.
        os.environ["PYTHONPATH"] = str(self.tree)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(self.tree))
        # As tests/conftest.py: read when TensorFlow is imported.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
        # It greets from C++, whatever the level.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        for name in _IMPORTED_ONCE:
            importlib.import_module(name)

    def run(self, tests, slow):
        """Returns the `Outcome` of tests, and slow ones, run in a child."""
        started = time.perf_counter()
        output = self.folder / "output.txt"
        output.write_bytes(b"")
        context = multiprocessing.get_context("fork")
        arguments = (tests, slow, output)
        child = context.Process(target=self._run_in_child, args=arguments)
        child.start()
        child.join()
        text = output.read_text(encoding="utf-8", errors="replace")
        failed = re.search(_FAILED, text, re.MULTILINE)
        return Outcome(
            child.exitcode,
            failed[1] if failed else "",
            text,
            time.perf_counter() - started,
        )

    def _run_in_child(self, tests, slow, output):
        signal.alarm(SECONDS * len(tests))
        with output.open("wb") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        options = ["-q", "-x", "-p", "no:cacheprovider"]
        options += ["-m", "" if slow else "not slow"]
        options.append(f"--basetemp={self.folder / 'of_tests'}")
        status = pytest.main([*options, *tests])
        package = sys.modules.get(PACKAGE)
        if package and not Path(package.__file__).is_relative_to(self.tree):
            print(f"The tests imported {package.__file__}")
            status = _WRONG_PACKAGE
        sys.exit(int(status))


_worker = None


def _start_worker(folder):
    global _worker
    _worker = Worker(folder)


def _run_unchanged(mutants):
    tests = dict.fromkeys(test for mutant in mutants for test in mutant.tests)
    return _worker.run(list(tests), any(mutant.slow for mutant in mutants))


def _run_mutant(mutant):
    path = _worker.tree / mutant.file
    try:
        text = path.read_text(encoding="utf-8")
        path.write_text(mutant.apply(text), encoding="utf-8")
    except (OSError, ValueError) as error:
        return Outcome(_WRONG_PACKAGE, "", str(error), 0.0)
    outcome = _worker.run(mutant.tests, mutant.slow)
    path.write_text(text, encoding="utf-8")
    return outcome


def verdict(outcome):
    """Returns `"found"`, `"MISSED"`, or what is wrong with the entry."""
    # A child that dies of an exception has this status, too.
    if outcome.status == pytest.ExitCode.TESTS_FAILED and outcome.failed:
        return "found"
    if outcome.status == pytest.ExitCode.OK:
        return "MISSED"
    last = (outcome.output.strip().splitlines() or [""])[-1]
    return f"ERROR, status {outcome.status}: {last}"


def run(mutants, processes):
    """Prints a line for each mutant; returns how many were found."""
    context = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="mutants_") as folder,
        concurrent.futures.ProcessPoolExecutor(
            processes, context, _start_worker, (folder,)
        ) as pool,
    ):
        outcome = pool.submit(_run_unchanged, mutants).result()
        if outcome.status != pytest.ExitCode.OK:
            sys.exit(f"{outcome.output}\nThe tests fail without any mutant.")
        print(f"Without them all tests pass: {outcome.seconds:.0f} s")
        found = 0
        for mutant, outcome in zip(
            mutants, pool.map(_run_mutant, mutants), strict=True
        ):
            said = verdict(outcome)
            found += said == "found"
            print(
                f"{mutant.name}: {said}, {outcome.failed or 'no test failed'}, "
                f"{outcome.seconds:.0f} s",
                flush=True,
            )
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", help="mutants; default: all")
    parser.add_argument(
        "--processes", type=int, default=2, help="default: %(default)s"
    )
    options = parser.parse_args(arguments)
    mutants = read_mutants()
    unknown = set(options.names) - {mutant.name for mutant in mutants}
    if unknown:
        parser.error(f"unknown mutants: {', '.join(sorted(unknown))}")
    if options.names:
        mutants = [m for m in mutants if m.name in options.names]
    found = run(mutants, options.processes)
    print(f"{found} of {len(mutants)} mutants found")
    return 0 if found == len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
