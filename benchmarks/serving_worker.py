"""Answers groups of requests with SavedModels, on command, to be timed.

    python benchmarks/serving_worker.py <SavedModel> [<SavedModel> ...]

`serving_speed.py` drives it through JSON lines. One model answers for all
tasks; several answer for one each, in the order of the tasks.
"""

import argparse
import json
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401

from tf_adapters.data.rows import generated


class OneModel:
    """One SavedModel for all tasks."""

    def __init__(self, folder):
        self.loaded = tf.saved_model.load(str(folder))
        self.serve = self.loaded.signatures["serving_default"]

    def answer(self, texts, tasks):
        """Returns the probabilities of each row."""
        return self.serve(
            text=tf.constant(texts),
            text_pair=tf.constant([""] * len(texts)),
            task=tf.constant([f"task_{number}" for number in tasks]),
        )["probabilities"].numpy()


class ModelForEachTask:
    """A SavedModel for each task."""

    def __init__(self, folders):
        self.loaded = [tf.saved_model.load(str(path)) for path in folders]
        self.serve = [m.signatures["serving_default"] for m in self.loaded]

    def answer(self, texts, tasks):
        """Calls the model of each task with the rows that are its own."""
        for number in np.unique(tasks):
            rows = [texts[place] for place in np.flatnonzero(tasks == number)]
            self.serve[number](tf.constant(rows))["probabilities"].numpy()


def groups(texts, size, num_tasks):
    """Yields groups of requests without end: texts, and numbers of tasks."""
    generator = np.random.default_rng(0)
    while True:
        chosen = generator.choice(len(texts), size)
        tasks = generator.integers(num_tasks, size=size)
        yield [texts[place] for place in chosen], tasks


def resident_bytes():
    """Returns what this process holds in memory now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--group", type=int, default=32)
    parser.add_argument("--num_tasks", type=int)
    arguments = parser.parse_args()
    output, sys.stdout = sys.stdout, sys.stderr
    several = len(arguments.folders) > 1
    model = (
        ModelForEachTask(arguments.folders)
        if several
        else OneModel(arguments.folders[0])
    )
    rows = generated.read_rows("sentiment", "train")
    texts = [row["sentence"] for row in rows]
    requests = groups(texts, arguments.group, arguments.num_tasks)
    print(json.dumps({"ready": True}), file=output, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        seconds = 0.0
        for _ in range(command["steps"]):
            texts, tasks = next(requests)
            if command["do"] == "alike":
                tasks = np.full_like(tasks, tasks[0])
            started = time.perf_counter()
            model.answer(texts, tasks)
            seconds += time.perf_counter() - started
        answer = {"seconds": seconds, "bytes": resident_bytes()}
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
