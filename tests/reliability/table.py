"""The guarantees and their tests, for the tables in docs/reliability.md.

    python -m tests.reliability.table          # writes the tables again
    python -m tests.reliability.table --run    # runs the tests for the numbers
    python -m tests.reliability.table --results=all.xml    # they have been run

where `pytest -o junit_family=legacy --junitxml=all.xml` wrote the file.

A passed test counts as one survived fault, or as the number that it records
(`record_property("faults", n)`).
"""

import argparse
import dataclasses
from pathlib import Path
import re
import subprocess
import sys
import tempfile
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "reliability.md"


@dataclasses.dataclass(frozen=True)
class Row:
    """A line of a table.

    Attributes:
        given: The fault, or the two cases with equal results.
        then: The outcome, or the tolerance.
        file: The test file.
        tests: Expression for `pytest -k` that selects the tests.
    """

    given: str
    then: str
    file: str
    tests: str

    @property
    def command(self):
        """The tests' command."""
        word = f'"{self.tests}"' if " " in self.tests else self.tests
        return f"pytest {self.file} -k {word}"


FAULTS = (
    Row(
        "SIGKILL or SIGTERM at a random moment, also in the middle of writing "
        "a checkpoint",
        "the same command resumes at the last whole checkpoint and ends with "
        "the same weights, metrics, log and events, bit for bit on one device",
        "tests/runs/recovery_test.py",
        "twenty",
    ),
    Row(
        "SIGTERM in a step",
        "a checkpoint after it, exit status 75, then as above",
        "tests/runs/recovery_test.py",
        "sigterm",
    ),
    Row(
        "a crash",
        "the same command resumes, as above",
        "tests/runs/recovery_test.py",
        "crash",
    ),
    Row(
        "a result, a log or stored predictions are damaged",
        "one sentence that names the file",
        "tests/runs/damaged_files_test.py",
        "test",
    ),
    Row(
        "a run folder has links to files and folders elsewhere",
        "nothing is written there: new files replace links to files, and "
        "links to folders are refused",
        "tests/runs/linked_files_test.py",
        "test",
    ),
    Row(
        "the newest checkpoint is damaged",
        "a warning names it, and the one before it is used",
        "tests/runs/checkpoints_test.py",
        "damaged",
    ),
    Row(
        "a full disk",
        "one sentence; files saved before are intact, and the same command "
        "resumes when there is space",
        "tests/bad_input_test.py",
        "full",
    ),
    Row(
        "a disk of 8, 150 or 600 kB that fills up during a run",
        "the same; with more space the run ends like an uninterrupted run, "
        "bit for bit",
        "tests/runs/full_disk_test.py",
        "goes_on",
    ),
    Row(
        "a second process in the folder; other settings, or other data",
        "refused, with the difference",
        "tests/runs/recovery_test.py",
        "two_runs or other_data",
    ),
    Row(
        "NaN or infinity in a loss or a gradient",
        "the run ends and names step and variable; the best adapter so far is "
        "kept",
        "tests/training/trainer_test.py",
        "not_finite or bad_gradient",
    ),
    Row(
        "one of two workers gets SIGTERM or SIGKILL",
        "both end with status 75 and say so; the same commands end with the "
        "weights of an uninterrupted run",
        "tests/runs/workers_test.py",
        "where_one_worker_ends",
    ),
    Row(
        "a finished run of two workers is started again, and only the chief "
        "has its folder",
        "both print its result and end with status 0",
        "tests/runs/workers_test.py",
        "finished_run",
    ),
    Row(
        "the machine of a run with `--model_dir=gs://...` is lost",
        "another machine resumes at the last checkpoint",
        "tests/runs/remote_folder_test.py",
        "goes_on",
    ),
    Row(
        "a worker of a study on Ray is killed or stopped",
        "another worker resumes its run",
        "tests/launch/ray_runner_test.py",
        "takes_a_run_over",
    ),
    Row(
        "a process of the live server is killed: the one that computes, or "
        "the one that answers HTTP",
        "it is started again; each request is answered by its own adapter, or "
        "refused",
        "tests/serving/server_test.py",
        "killed_process",
    ),
    Row(
        "SIGTERM while clients ask the live server",
        "no accepted request is lost",
        "tests/serving/server_test.py",
        "sigterm_loses",
    ),
    Row(
        "hostile requests to the live server; 500 connections that never end "
        "their request",
        "another client gets the answers of its adapters",
        "tests/serving/server_test.py",
        "stop_nobody",
    ),
    Row(
        "an adapter for the live server is damaged, or belongs to another "
        "encoder or width",
        "status 409 with the reason; the other adapters answer",
        "tests/serving/other_sources_test.py",
        "does_not_fit",
    ),
    Row(
        "a full disk while the live server loads an adapter from the Hub",
        "status 503 with the reason; the other adapters answer",
        "tests/serving/other_sources_test.py",
        "disk_is_full",
    ),
)

EQUAL = (
    Row(
        "one device and two replicas, every method",
        "2e-5 a step",
        "tests/methods/replicas_test.py",
        "two_replicas",
    ),
    Row(
        "one, two and four logical replicas on one machine, batch sizes that "
        "are not divisible",
        "2e-5 in losses and weights",
        "tests/training/replica_scaling_test.py",
        "share",
    ),
    Row(
        "one process and two workers; each worker's share in one and in two "
        "parts",
        "2e-5 in losses and weights",
        "tests/runs/workers_test.py",
        "equal_one_process",
    ),
    Row(
        "a batch in parts and as a whole, clipped after the sum",
        "5e-6, after Adam",
        "tests/methods/replicas_test.py",
        "parts",
    ),
    Row(
        "steps in a loop on the device and one by one",
        "1e-6",
        "tests/training/trainer_test.py",
        "loop",
    ),
    Row(
        "batches of fixed and of free shapes; batch sizes that are not "
        "divisible",
        "2e-5",
        "tests/data/batches/fixed_batches_test.py",
        "test",
    ),
    Row(
        "a step with and without XLA",
        "1e-4 of the loss",
        "tests/training/xla_test.py",
        "test",
    ),
)
_TABLES = {
    "faults": (FAULTS, "what happens", "what follows"),
    "equal": (EQUAL, "", "equal within"),
}


def updated(counts):
    """Returns the document with the tables.

    Args:
        counts: Dict from a row's command to the numbers of tried and survived
            faults.
    """
    text = DOCUMENT.read_text(encoding="utf-8")
    for name, (rows, *titles) in _TABLES.items():
        begin = f"<!-- {name}: made by tests/reliability/table.py. -->\n"
        before, _, rest = text.partition(begin)
        _, end, after = rest.partition("<!-- Until here. -->\n")
        lines = [
            "",
            f"| {' | '.join(titles)} | tried | held | checked by |",
            "|---|---|---|---|---|",
            *(_line(row, *counts.get(row.command, ("", ""))) for row in rows),
            "",
        ]
        table = "".join(f"{line}\n" for line in lines)
        text = f"{before}{begin}{table}{end}{after}"
    return text


def _line(row, tried, held):
    cells = (row.given, row.then, tried, held, f"`{row.command}`")
    return f"| {' | '.join(map(str, cells))} |"


def written_counts():
    """Returns the counts in the document."""
    pattern = r"\| (\d*) \| (\d*) \| `(pytest [^`]*)` \|\n"
    found = re.findall(pattern, DOCUMENT.read_text(encoding="utf-8"))
    return {command: (tried, held) for tried, held, command in found}


def run(row):
    """Runs a row's tests; returns the numbers of tried and survived faults."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-q", row.file]
        command += ["-k", row.tests, f"--junitxml={path}"]
        command += ["-o", "junit_family=legacy"]
        subprocess.run(command, cwd=ROOT)
        return count(row, path)


def count(row, results):
    """Returns how many faults a file of pytest's results has of a row.

    Args:
        row: `Row`.
        results: Path of an XML file of this row's tests, or of all tests.
    """
    module = row.file.removesuffix(".py").replace("/", ".")
    words = row.tests.split(" or ")
    cases = [
        case
        for case in ElementTree.parse(results).getroot().iter("testcase")
        if case.get("classname") == module
        and any(word in case.get("name") for word in words)
    ]
    tried = {case: _faults(case) for case in cases}
    failed = [c for c in cases if {part.tag for part in c} & _FAILED]
    return sum(tried.values()), sum(
        number for case, number in tried.items() if case not in failed
    )


_FAILED = {"failure", "error", "skipped"}


def _faults(case):
    found = case.find("./properties/property[@name='faults']")
    return 1 if found is None else int(found.get("value"))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", action="store_true", help="run the tests")
    parser.add_argument("--results", help="results of all tests")
    options = parser.parse_args()
    counts = written_counts()
    for row in FAULTS + EQUAL if options.run else ():
        counts[row.command] = run(row)
        DOCUMENT.write_text(updated(counts), encoding="utf-8")
    for row in FAULTS + EQUAL if options.results else ():
        counts[row.command] = count(row, options.results)
    DOCUMENT.write_text(updated(counts), encoding="utf-8")


if __name__ == "__main__":
    main()
