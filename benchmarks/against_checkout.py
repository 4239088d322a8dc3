"""This checkout's speed compared with another, such as the commit before.

    git worktree add ../before HEAD~1
    python benchmarks/against_checkout.py --other=../before --data_dir=<folder>

Houlsby on SST-2 as in `train_throughput.py`, and a fusion of eight adapters as
in `fusion_speed.py`, each checkout in a process of its own. They take turns; a
ratio is the other's seconds over ours, so that above 1 this checkout is faster,
and its spread is over the turns.
"""

import argparse
from pathlib import Path
import sys

import numpy as np
from worker import Worker

HERE = Path(__file__).parent


def _commands(checkout, arguments):
    """Returns the worker's command of a checkout by what it measures."""
    train = [HERE / "checkout_worker.py", f"--checkout={checkout}"]
    fusion = [checkout / "benchmarks" / "fusion_worker.py"]
    return {
        "houlsby": [*train, f"--data_dir={arguments.data_dir}"],
        "fusion of 8": [*fusion, "--shape=minilm", "--adapters=8"],
    }


def _in_turn(sides, turn):
    """Returns the sides, every other turn the other way round."""
    items = list(sides.items())
    return items[::-1] if turn % 2 else items


def measure(commands, turns, steps):
    """Returns seconds as {(side, what): [one a turn]}.

    Args:
        commands: Dict from side to the arguments of a Python.
        turns: Integer. One more comes first, which builds graphs.
        steps: Steps in a turn.
    """
    sides = {
        name: Worker([sys.executable, *command])
        for name, command in commands.items()
    }
    seconds = {}
    for turn in range(turns + 1):
        for what in ("train", "infer"):
            # What goes first meets another machine than what follows it.
            for name, worker in _in_turn(sides, turn):
                value = worker.do(what, steps)["seconds"]
                if turn:
                    seconds.setdefault((name, what), []).append(value)
    for worker in sides.values():
        worker.stop()
    return seconds


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--other", type=Path, required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--turns", type=int, default=6)
    parser.add_argument("--steps", type=int, default=5)
    arguments = parser.parse_args()
    ours = _commands(HERE.parent, arguments)
    theirs = _commands(arguments.other.absolute(), arguments)
    print("| | | ratio | middle half |\n|---|---|---|---|")
    for name in ours:
        commands = {"ours": ours[name], "theirs": theirs[name]}
        seconds = measure(commands, arguments.turns, arguments.steps)
        for what in ("train", "infer"):
            ratios = np.divide(seconds["theirs", what], seconds["ours", what])
            low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
            print(
                f"| {name} | {what} | {middle:.2f} | {low:.2f}-{high:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
