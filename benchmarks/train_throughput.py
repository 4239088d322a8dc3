"""Training and inference steps, ours and the `adapters` library's, in one call.

    python benchmarks/train_throughput.py --data_dir=<folder> \
        --peer_python=.venv-peer/bin/python

Houlsby adapters of 64 units with SiLU on `minilm`, trained norms, the same
texts and batch size on both sides. The sides take turns of one pass over the
texts each, so that what else the machine does hits both and batch lengths
agree; a ratio is theirs over ours in seconds, its spread is over the turns.
`benchmarks/peers` says which settings of PyTorch were chosen; it runs twice,
with random batches padded to their longest, and grouped by length as ours.
"""

import argparse
import itertools
import os
from pathlib import Path
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import measurements  # noqa: E402
import numpy as np  # noqa: E402
import peer_rows  # noqa: E402
from worker import Worker  # noqa: E402

from tf_adapters.config import resolve  # noqa: E402
from tf_adapters.data.batches import batch_plan  # noqa: E402
from tf_adapters.encoders import minilm  # noqa: E402
from tf_adapters.runs import experiment  # noqa: E402
from tf_adapters.runs import task_data  # noqa: E402

BATCH_SIZE = 32
PEER = Path(__file__).parent / "peers" / "adapters_throughput.py"


class Ours:
    """Our steps over an endless plan, batches grouped by length."""

    def __init__(self, task, data_dir, precision, num_examples):
        self.config = resolve.resolve_config(
            {
                "task": task,
                "method": {"name": "houlsby", "activation": "silu"},
                "data": {
                    "data_dir": data_dir,
                    "max_train_examples": num_examples,
                },
                "train": {"precision": precision, "learning_rate": 5e-4},
            }
        )
        data = task_data.load_task_data(self.config)
        self.task, self.rows = data.task, data.rows["train"]
        run = experiment.Experiment(self.config, self.task)
        run.trainer.prepare_training(10_000)
        self.examples = run.examples(self.rows)
        self.trainer = run.trainer
        plan = list(itertools.islice(self._plan(), 5_000))
        self.train_steps = run.trainer.train_loops(
            self.examples, [[batch] for batch in plan]
        )
        self.evaluation = run.trainer.evaluator.evaluation(
            run.trainer.answers, self.examples, plan
        )
        self.plans = {what: iter(plan) for what in ("train", "infer")}

    def _plan(self):
        for epoch in itertools.count():
            yield from batch_plan.plan_training(
                self.examples.lengths, BATCH_SIZE, 0, epoch, "grouped", 128
            )

    def do(self, what, steps):
        """Returns seconds an example over some steps."""
        started = time.perf_counter()
        batches = list(itertools.islice(self.plans[what], steps))
        if what == "train":
            results = itertools.islice(self.train_steps, steps)
        else:
            # A part of them: evaluation works ahead, and must not do so while
            # another side is being measured.
            step, features = self.evaluation
            some = itertools.islice(features, steps)
            results = self.trainer.evaluator.eval_steps(step, some)
        for result in results:
            np.asarray(result[0])  # Waits for the device.
        seconds = time.perf_counter() - started
        return seconds / sum(len(batch.indices) for batch in batches)


class Theirs(Worker):
    """The library in a process of its own, which waits between commands."""

    def __init__(self, python, texts, precision, group_by_length):
        command = [python, PEER, f"--encoder={minilm.minilm_folder()}"]
        command += [f"--texts={texts}", f"--precision={precision}"]
        super().__init__(
            command + (["--group_by_length"] if group_by_length else [])
        )

    def do(self, what, steps):
        """Returns seconds an example over some steps."""
        answer = super().do(what, steps)
        return answer["seconds"] / answer["examples"]


def measure(sides, turns, num_examples):
    """Returns seconds an example as {(side, what): [one for each turn]}."""
    seconds = {}
    steps = -(-num_examples // BATCH_SIZE)
    for turn in range(turns + 1):
        for what in ("train", "infer"):
            for name, side in sides.items():
                value = side.do(what, steps)
                if turn:  # The first turn builds graphs and fills caches.
                    seconds.setdefault((name, what), []).append(value)
    return seconds


def compare(task, precision, arguments):
    """Measures one task in one precision; prints a line for each ratio."""
    ours = Ours(task, arguments.data_dir, precision, arguments.examples)
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.jsonl"
        peer_rows.write(ours.rows, ours.task.text_fields, texts)
        name = precision.removeprefix("mixed_")
        peers = {
            f"adapters, {order}": Theirs(
                arguments.peer_python, texts, name, order == "grouped"
            )
            for order in ("random", "grouped")
        }
        seconds = measure(
            {"ours": ours, **peers}, arguments.turns, len(ours.rows)
        )
        for peer in peers.values():
            peer.stop()
    rows = []
    for (side, what), theirs in seconds.items():
        own = np.array(seconds["ours", what])
        if side == "ours":
            continue
        rows.append(
            measurements.row(
                f"{task}, {name}, {what}, batches {side.split()[-1]}",
                "examples/s",
                1 / own,
                1 / np.array(theirs),
                "adapters",
                more_is_better=True,
            )
        )
        ratios = np.array(theirs) / own
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(
            f"| {task} | {name} | {what} | {side} | {1 / np.median(own):.0f} "
            f"| {1 / np.median(theirs):.0f} | {middle:.2f} "
            f"| {low:.2f}-{high:.2f} |",
            flush=True,
        )
    measurements.write(arguments.output, rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--tasks", default="sst2,mrpc")
    parser.add_argument("--precisions", default="float32,mixed_bfloat16")
    parser.add_argument("--examples", type=int, default=640)
    parser.add_argument("--turns", type=int, default=5)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    print(
        "| task | precision | | peer | ours, examples/s | theirs | ratio | "
        "middle half |\n|---|---|---|---|---|---|---|---|"
    )
    for task in arguments.tasks.split(","):
        for precision in arguments.precisions.split(","):
            compare(task, precision, arguments)


if __name__ == "__main__":
    main()
