"""What an adapter loses on a quantized encoder, and regains by training on it.

    python benchmarks/quantized_accuracy.py --data_dir=<folder> --output=<file>
    python benchmarks/quantized_accuracy.py --output=<file> --report

Trains `pfeiffer` on MiniLM as it is and quantized to int8 and to int4, and also
evaluates the first of these on the two quantized encoders. Nothing is selected:
the last weights count. Each result is a line of the output file, and a line
that is there already is not computed again.
"""

import argparse
import dataclasses
import json
import os
from pathlib import Path
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras
import numpy as np

TASKS = ("sst2", "sick", "mrpc")
# Pairs: the encoder in training, and in evaluation.
WAYS = (
    (None, None),
    (None, "int8"),
    ("int8", "int8"),
    (None, "int4"),
    ("int4", "int4"),
)


def make_config(task, seed, quantize, arguments):
    """Returns the `Config` of a run."""
    from tf_adapters.config import resolve

    return resolve.resolve_config(
        {
            "task": task,
            "seed": seed,
            "quantize": quantize,
            "method": {"name": "pfeiffer", "units": 64},
            "data": {
                "data_dir": arguments.data_dir,
                "max_length": 128,
                "max_train_examples": arguments.examples,
                # Nothing is selected by the validation rows.
                "max_validation_examples": 100,
                "max_test_examples": 1000,
            },
            "train": {
                "epochs": arguments.epochs,
                "learning_rate": 3e-3,
                "keep": "last",
                "validate_every_steps": 10**6,
            },
        }
    )


def train(config, folder):
    """Trains a run and returns its result."""
    from tf_adapters.runs import task_data
    from tf_adapters.runs import whole_run

    return whole_run.train_run(config, task_data.load_task_data(config), folder)


def results_of(task, seed, trained_on, ways, arguments):
    """Yields (way, result) of a run and of its evaluations."""
    from tf_adapters.runs import finished_run

    config = make_config(task, seed, trained_on, arguments)
    with tempfile.TemporaryDirectory() as folder:
        trained = train(config, folder)
        for way in ways:
            result = trained
            if way[1] != trained_on:
                other = dataclasses.replace(config, quantize=way[1])
                result = finished_run.evaluate_run(other, folder)
            yield way, result
    keras.utils.clear_session()


def compute(arguments):
    """Computes the lines that the output file lacks, and appends them."""
    done = {key(line) for line in read(arguments.output)}
    for seed in arguments.seeds:
        for task in arguments.tasks:
            for trained_on in (None, "int8", "int4"):
                ways = [
                    way
                    for way in WAYS
                    if way[0] == trained_on and (task, seed, *way) not in done
                ]
                if not ways:
                    continue
                found = results_of(task, seed, trained_on, ways, arguments)
                for way, result in found:
                    append(arguments.output, line_of(task, seed, way, result))


def line_of(task, seed, way, result):
    """Returns a line of the output file, a dict."""
    kept = ("test", "encoder_bytes", "examples_per_second")
    return {
        "task": task,
        "seed": seed,
        "trained_on": way[0],
        "evaluated_on": way[1],
        **{name: result[name] for name in kept if name in result},
    }


def key(line):
    """Returns what a line is about: task, seed and the two encoders."""
    return tuple(
        line[n] for n in ("task", "seed", "trained_on", "evaluated_on")
    )


def read(path):
    """Returns the lines of a file as dicts, none if it does not exist."""
    if not Path(path).is_file():
        return []
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def append(path, line):
    """Appends a line to a file and prints it."""
    print(json.dumps(line), flush=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def report(lines):
    """Prints accuracies, and their differences from the float encoder's.

    Only tasks and seeds with all their lines count.
    """
    accuracies = {key(line): accuracy(line) for line in lines}
    runs = sorted(
        {
            found[:2]
            for found in accuracies
            if all((*found[:2], *way) in accuracies for way in WAYS)
        }
    )
    tasks = sorted({task for task, _ in runs})
    print("| trained on | evaluated on | " + " | ".join(tasks) + " | change |")
    print("|---|---|" + "---|" * (len(tasks) + 1))
    for way in WAYS:
        cells = [
            mean_and_error(
                [accuracies[(*run, *way)] for run in runs if run[0] == task]
            )
            for task in tasks
        ]
        changes = [
            accuracies[(*run, *way)] - accuracies[(*run, None, None)]
            for run in runs
        ]
        names = (name or "float32" for name in way)
        cells = [*names, *cells, mean_and_error(changes, "+.2f")]
        print(f"| {' | '.join(cells)} |")


def accuracy(line):
    """Returns the accuracy on test rows in percent."""
    return 100 * line["test"]["accuracy"]


def mean_and_error(values, form=".1f"):
    """Returns a mean and its standard error as text."""
    error = np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):{form}} ± {error:.2f}"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data_dir", help="folder of the tasks' data")
    parser.add_argument("--output", required=True, help="file of results")
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(0, 1, 2))
    parser.add_argument("--examples", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--report", action="store_true")
    arguments = parser.parse_args()
    if not arguments.report:
        compute(arguments)
    report(read(arguments.output))


if __name__ == "__main__":
    main()
