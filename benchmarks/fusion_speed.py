"""AdapterFusion compared with the `adapters` library, or LoRA with PEFT.

    python benchmarks/fusion_speed.py --peer_python=.venv-peer/bin/python
    python benchmarks/fusion_speed.py --lora_ranks=8,64

Time and peak memory of a step, with encoders of random weights and 32 texts of
128 tokens: bottlenecks of a sixteenth of the width, or products of the given
ranks on query and value; float32. For each number both sides run in a process
of their own and take turns; a ratio is theirs over ours in seconds, its spread
is over the turns. Memory is each process's peak while training.
"""

import argparse
from pathlib import Path
import sys

import measurements
import numpy as np
from worker import Worker

HERE = Path(__file__).parent


def start_sides(options, peer_python=None):
    """Starts our worker and the peer's; returns a dict from side to worker.

    Args:
        options: What both workers are started with.
        peer_python: Python of the peer. `None` (default) starts ours only.
    """
    own = [sys.executable, HERE / "fusion_worker.py", *options]
    sides = {"ours": Worker(own)}
    if peer_python:
        script = HERE / "peers" / "fusion_worker.py"
        sides["theirs"] = Worker([peer_python, script, *options])
    return sides


def measure(sides, turns, steps):
    """Returns the workers' answers as {(side, what): [one for each turn]}.

    Args:
        sides: What `start_sides` returned. The workers are stopped.
        turns: Number of turns. One more comes first.
        steps: Steps in a turn. Seconds in the answers are of one step.
    """
    answers = {}
    for turn in range(turns + 1):
        for what in ("train", "infer"):
            for name, worker in sides.items():
                answer = worker.do(what, steps)
                answer["seconds"] /= steps
                if turn:  # The first turn builds graphs and fills caches.
                    answers.setdefault((name, what), []).append(answer)
    for worker in sides.values():
        worker.stop()
    return answers


def values(answers, side, what, name="seconds"):
    """Returns one value of each answer of a side."""
    return [answer[name] for answer in answers[side, what]]


def gigabytes(answers, side):
    """Returns the peak memory of a side's training."""
    return max(values(answers, side, "train", "peak_bytes")) / 1e9


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--shapes", default="minilm,bert_base")
    parser.add_argument("--adapters", default="1,2,4,8,16")
    parser.add_argument("--lora_ranks", help="Measures LoRA, not fusion.")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    option, numbers = "adapters", arguments.adapters
    if arguments.lora_ranks:
        option, numbers = "lora_rank", arguments.lora_ranks
    print(
        f"| encoder | {option} | | ours, s | theirs, s | ratio | middle half "
        "| ours, GB | theirs, GB |\n|---|---|---|---|---|---|---|---|---|"
    )
    for shape in arguments.shapes.split(","):
        for number in map(int, numbers.split(",")):
            options = [f"--shape={shape}", f"--{option}={number}"]
            sides = start_sides(options, arguments.peer_python)
            found = measure(sides, arguments.turns, arguments.steps)
            report(shape, number, found)
            case = f"{shape}, {option.replace('_', ' ')} {number}"
            measurements.write(arguments.output, rows_of(case, found))


def rows_of(case, answers):
    """Returns rows of seconds for a step and of peak memory."""
    peer = "PEFT" if "lora" in case else "adapters"
    rows = [
        measurements.row(
            f"{case}, {what}",
            "s a step",
            values(answers, "ours", what),
            values(answers, "theirs", what),
            peer,
        )
        for what in ("train", "infer")
    ]
    memory = [[gigabytes(answers, side)] for side in ("ours", "theirs")]
    return [*rows, measurements.row(f"{case}, memory", "GB", *memory, peer)]


def report(shape, number, answers):
    """Prints a line for training and one for inference."""
    memory = [f"{gigabytes(answers, side):.2f}" for side in ("ours", "theirs")]
    for what in ("train", "infer"):
        ours, theirs = (
            np.array(values(answers, side, what)) for side in ("ours", "theirs")
        )
        low, middle, high = np.quantile(theirs / ours, [0.25, 0.5, 0.75])
        print(
            f"| {shape} | {number} | {what} | {np.median(ours):.2f} "
            f"| {np.median(theirs):.2f} | {middle:.2f} | {low:.2f}-{high:.2f} "
            f"| {' | '.join(memory if what == 'train' else ['', ''])} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
