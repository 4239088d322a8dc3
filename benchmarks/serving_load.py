"""The live server under load: many adapters, clients, changes.

    python benchmarks/serving_load.py
    python benchmarks/serving_load.py --adapters=8,1000 --seconds=5 --turns=3
    python benchmarks/serving_load.py --adapters=1000 --workloads=zipf \
        --requests=100000 --turns=1

A server for each number of adapters, and one with a head alone (`bare`), run on
this machine's loopback with `minilm`. Adapters are of the given methods in
turn, with random weights and heads of two labels. Clients ask in a closed loop,
each for a text of the given length by an adapter that is drawn uniformly or
with exponent 1.1 (zipf). The servers take turns, and the spread is over the
turns. Each answer is compared with what its own adapter answers without bank
and server.

With `changes`, another client meanwhile loads adapters under new names, asks
them, replaces them by others and unloads them, repeatedly. Memory is that of
the process that computes.
"""

import argparse
import collections
import os
from pathlib import Path
import shutil
import signal
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from bank_speed import KINDS  # noqa: E402
import load_adapters  # noqa: E402
import load_clients  # noqa: E402
import load_servers  # noqa: E402
import measurements  # noqa: E402
import numpy as np  # noqa: E402


def measure(servers, cases, load, turns, folder):
    """Lets servers take turns.

    Args:
        servers: Dict from name to `load_servers.Server`.
        cases: List of the name of a server, a workload, and whether adapters
            are changed meanwhile.
        load: `load_clients.Load`.
        turns: Number of turns.
        folder: Path of the folder with all adapters.

    Returns:
        Dict from each case to an array of its figures in each turn, and a
        `Counter` of all answers.
    """
    found, counts = collections.defaultdict(list), collections.Counter()
    warm = load_clients.Load(load.texts, load.answers, load.clients, 2)
    for server in servers.values():
        load_clients.ask(server, "zipf", warm)
    for _ in range(turns):
        for case in cases:
            name, workload, changes = case
            change = load_clients.change_adapters(folder) if changes else None
            outcome = load_clients.ask(servers[name], workload, load, change)
            counts.update(outcome.counts)
            found[case].append(outcome.figures())
    return {case: np.array(rows) for case, rows in found.items()}, counts


def report(found, counts):
    """Prints the table, and how much changes cost."""
    print("adapters  load     changes  texts/s        p50 ms   p99 ms")
    for (name, workload, changes), rows in found.items():
        speed, middle, last = np.median(rows, axis=0)
        low, high = np.percentile(rows[:, 0], (25, 75))
        print(
            f"{name:>8}  {workload:7}  {'yes' if changes else 'no':7}  "
            f"{speed:6.1f} ± {(high - low) / 2:4.1f}  {1e3 * middle:7.1f}  "
            f"{1e3 * last:7.1f}"
        )
    for (name, workload, changes), rows in found.items():
        if changes:
            with_changes = np.median(rows[:, 2])
            without = np.median(found[name, workload, False][:, 2])
            print(
                f"{name}, {workload}: p99 with changes is "
                f"{with_changes / without:.2f} times that without"
            )
    print(f"answers: {dict(counts)}")


def rows_of(found):
    """Returns rows of speeds and of the 99th percentile of the latencies.

    Args:
        found: Dict from each case to its figures in each turn; see `measure`.
    """
    bare, _, bare_last = found["bare", "zipf", False].T
    peer, rows = "a server with a head alone", []
    for (name, workload, changes), figures in found.items():
        if name == "bare":
            continue
        speeds, _, last = figures.T
        case = f"{name} adapters, {workload}{', changing' if changes else ''}"
        rows.append(
            measurements.row(
                case, "texts/s", speeds, bare, peer, more_is_better=True
            )
        )
        p99 = f"{case}, p99", "ms", 1e3 * last, 1e3 * bare_last, peer
        rows.append(measurements.row(*p99))
    return rows


def main():
    arguments = _arguments()
    # So that the servers end with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    numbers = list(map(int, arguments.adapters.split(",")))
    texts = load_adapters.make_texts(arguments.tokens)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        kinds = arguments.kinds.split(",")
        answers = load_adapters.write(folder, kinds, max(numbers), texts)
        bare = load_adapters.write(folder / "bare", ["head_only"], 1, texts)
        shutil.move(folder / "bare/runs/adapter_0", folder / "runs/bare")
        answers["bare"] = bare["adapter_0"]
        names = [f"adapter_{index}" for index in range(max(numbers))]
        seconds = np.inf if arguments.requests else arguments.seconds
        load = load_clients.Load(
            *(texts, answers, arguments.clients, seconds, arguments.requests)
        )
        servers = {
            str(number): load_servers.serve(folder, names[:number], extra=16)
            for number in numbers
        }
        servers["bare"] = load_servers.serve(folder, ["bare"], extra=1)
        try:
            for server in servers.values():
                server.wait()
            cases = [
                (name, workload, changes)
                for name in map(str, numbers)
                for workload in arguments.workloads.split(",")
                for changes in (False, True)
            ]
            cases.append(("bare", "zipf", False))
            found = measure(servers, cases, load, arguments.turns, folder)
            report(*found)
            measurements.write(arguments.output, rows_of(found[0]))
            for name, server in servers.items():
                print(f"{name} adapters: {server.megabytes(':engine'):.0f} MB")
        finally:
            for server in servers.values():
                server.end()


def _arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--adapters", default="8,1000")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--workloads", default="zipf,uniform")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument(
        "--requests", type=int, help="end after so many, not after --seconds"
    )
    parser.add_argument("--turns", type=int, default=5)
    measurements.add_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()
