"""Runs all benchmarks, and writes docs/benchmarks.md.

    python benchmarks/bench.py --data_dir=data \
        --peer_python=.venv-peer/bin/python
    python benchmarks/bench.py --list    # Names, and minutes of the last run
    python benchmarks/bench.py --only=starting,bank

Rows go to benchmarks/results/bench.jsonl: one line for each benchmark and
processor, which replaces the line of an earlier run. What this commit has
already measured on this processor is not measured again, so that a stopped run
can be resumed with the same command; `--again` measures it again, and so do
changes that are not committed, or a `--peer_python` that the line was measured
without. Each benchmark is compared with the line of the last commit. A number
is reported as worse if none of its turns is as good as any turn was before, and
its median is at least 2% worse.

What a benchmark needs and is not there, such as the Python of PyTorch, leaves
it out. Without `--peer_python`, a line that was measured with it is not
replaced. Nothing else should run on the machine.
"""

import argparse
import datetime
import os
from pathlib import Path
import subprocess
import sys
import tempfile
import time

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import bench_page  # noqa: E402
import machine  # noqa: E402
import measurements  # noqa: E402
from suite import BENCHMARKS  # noqa: E402

ROOT = HERE.parent
RESULTS = Path("benchmarks", "results", "bench.jsonl")
PAGE = ROOT / "docs" / "benchmarks.md"
# A median that is worse by less than this is never reported.
_LEAST_LOSS = 0.02


def is_worse(now, before):
    """Returns whether a row is worse than before, beyond both spreads."""
    if ("theirs" in now) != ("theirs" in before):
        return False  # One has ratios, the other values.
    new, old = measurements.goodness(now), measurements.goodness(before)
    middle = bench_page.median(new) / bench_page.median(old)
    return max(new) < min(old) and middle <= 1 - _LEAST_LOSS


def worse_cases(line, before):
    """Returns the cases of a line that are worse than before.

    Args:
        line: Dict of a benchmark that has just been measured.
        before: Dict of the same benchmark on the same processor, or `None`.
    """
    old = {row["case"]: row for row in before["rows"]} if before else {}
    return [
        row["case"]
        for row in line["rows"]
        if row["case"] in old and is_worse(row, old[row["case"]])
    ]


def not_compared(line, before):
    """Returns the cases that only one of two lines has, or has ratios of.

    Args:
        line: Dict of a benchmark that has just been measured.
        before: Dict of the same benchmark on the same processor.
    """
    new, old = (
        {row["case"]: "theirs" in row for row in one["rows"]}
        for one in (line, before)
    )
    return [
        case
        for case in {**new, **old}
        if case not in new or case not in old or new[case] != old[case]
    ]


def run_script(benchmark, arguments):
    """Runs a benchmark's script, and returns the rows that it wrote."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "rows.jsonl"
        command = [sys.executable, HERE / benchmark.script]
        command += [*benchmark.arguments_of(arguments), f"--output={output}"]
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        return measurements.read(output)


def measure(name, arguments, committed):
    """Measures a benchmark; returns its line of the results."""
    started = time.monotonic()
    line = {
        "benchmark": name,
        "processor": machine.processor(),
        "commit": machine.commit(ROOT),
        "date": datetime.date.today().isoformat(),
        "busy_before": round(machine.busy_share(), 2),
        "versions": machine.versions(arguments.peer_python),
        "rows": run_script(BENCHMARKS[name], arguments),
    }
    line["minutes"] = round((time.monotonic() - started) / 60, 1)
    before = find(committed, line)
    if before:
        line["before"] = before["commit"]
        line["worse"] = worse_cases(line, before)
        line["not_compared"] = not_compared(line, before)
    return line


def find(lines, wanted):
    """Returns the line of the same benchmark and processor, or `None`."""
    keys = ("benchmark", "processor")
    same = [x for x in lines if all(x[key] == wanted[key] for key in keys)]
    return same[0] if same else None


def replaced(lines, line):
    """Returns the lines with one of them replaced or added, in order."""
    others = [one for one in lines if one is not find(lines, line)]
    names = list(BENCHMARKS)
    return sorted(
        [*others, line],
        key=lambda one: (one["processor"], names.index(one["benchmark"])),
    )


def committed_lines():
    """Returns the lines of the last commit, or none without one."""
    command = ["git", "show", f"HEAD:{RESULTS.as_posix()}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return [] if done.returncode else measurements.parse(done.stdout)


def save(lines):
    """Writes the results and the page."""
    path = ROOT / RESULTS
    path.unlink(missing_ok=True)
    measurements.write(path, lines)
    PAGE.write_text(bench_page.page(lines), encoding="utf-8")


def run(names, arguments):
    """Runs benchmarks one after the other; returns whether all could run."""
    python = arguments.peer_python
    problem = machine.peer_problem(python) if python else None
    if problem:
        print(problem, flush=True)
        return False
    committed, works = committed_lines(), True
    for name in names:
        lines = measurements.read(ROOT / RESULTS)
        here = {"benchmark": name, "processor": machine.processor()}
        reason = reason_to_skip(name, find(lines, here), arguments)
        if reason:
            print(f"{name} {reason}", flush=True)
        else:
            works &= run_one(name, arguments, committed, lines)
    return works


def reason_to_skip(name, last, arguments):
    """Returns what is said of a benchmark that is not run, or `None`.

    Args:
        name: Name of the benchmark.
        last: Its line of the results, or `None`.
        arguments: Arguments of the command line.
    """
    benchmark, commit = BENCHMARKS[name], machine.commit(ROOT)
    missing = benchmark.missing(arguments)
    if missing:
        return f"is left out. {missing}"
    given = benchmark.takes_peer() and bool(arguments.peer_python)
    had = benchmark.takes_peer() and last and "torch" in last["versions"]
    # Which changes a commit "-changed" had is not known.
    same = last and last["commit"] == commit and not commit.endswith("-changed")
    if same and (had or not given) and not arguments.again:
        return f"has been measured at {commit}."
    if had and not given:
        return (
            "is left out, and its rows stay: they compare with PyTorch. Give "
            "--peer_python (PEER= of `make bench`) to replace them."
        )
    return None


def run_one(name, arguments, committed, lines):
    """Runs a benchmark and saves its rows; returns whether it could run."""
    print(f"\n{name}: {BENCHMARKS[name].title}", flush=True)
    try:
        line = measure(name, arguments, committed)
    except subprocess.CalledProcessError as error:
        print(f"{name} ended with exit status {error.returncode}; see above.")
        return False
    save(replaced(lines, line))
    print(f"{line['minutes']} minutes. {bench_page.circumstances(line)}")
    print(bench_page.comparison(line))
    return True


def print_list():
    """Prints the benchmarks, what they need, and how long they took."""
    lines = measurements.read(ROOT / RESULTS)
    for name, benchmark in BENCHMARKS.items():
        here = {"benchmark": name, "processor": machine.processor()}
        last = find(lines, here)
        took = f"{last['minutes']} min" if last else ""
        needs = ", ".join((*benchmark.needs, *benchmark.packages))
        print(f"{name:18} {took:9} {benchmark.title}; needs: {needs or '-'}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", help="Folder of the tasks' data.")
    parser.add_argument("--peer_python", help="Python with PyTorch.")
    parser.add_argument("--only", help="Names, separated by commas.")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--list", action="store_true")
    parser.add_argument(
        "--page_only", action="store_true", help="Writes the page again."
    )
    arguments = parser.parse_args()
    names = arguments.only.split(",") if arguments.only else list(BENCHMARKS)
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        parser.error(
            f"--only names benchmarks. Expected: {', '.join(BENCHMARKS)}. "
            f"Received: {', '.join(unknown)}."
        )
    if arguments.list:
        print_list()
    elif arguments.page_only:
        save(measurements.read(ROOT / RESULTS))
    elif not run(names, arguments):
        sys.exit(1)


if __name__ == "__main__":
    main()
