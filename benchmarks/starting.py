"""Time from the start of a command to its answer, and to its first step.

    python benchmarks/starting.py

Compares `tf-adapters predict` for one text, and `tf-adapters train` for one
batch, with a program that only imports TensorFlow and KerasHub and loads the
encoder, `minilm`. Training is timed to the end of its first step, and to the
end of the command, which also evaluates 960 texts. The four take turns, each in
a process of its own. Processor time is the time of all threads, and depends
less on other programs than the time on the clock.
"""

import argparse
import os
from pathlib import Path
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import measurements

from tf_adapters.encoders import minilm

ROOT = Path(__file__).parents[1]
LOADS = """
import sys
import tensorflow
import keras_hub
keras_hub.models.Backbone.from_preset(sys.argv[1])
"""
COMMAND = [sys.executable, "-m", "tf_adapters"]
ENDS_EARLY = (
    "--params_override=train.callbacks=[benchmarks.first_step:EndsProcess]"
)


def seconds_of(command):
    """Runs a process; returns its seconds on the clock and of the processor."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    environment.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
    # Python then compiles every module of TensorFlow again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(
        list(map(str, command)),
        cwd=ROOT,
        env=environment,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    user = after.ru_utime - before.ru_utime
    return wall, user + after.ru_stime - before.ru_stime


def train_command(folder):
    """Returns a command that trains on one batch and writes a run folder."""
    return [
        *COMMAND,
        "train",
        "--task=demo_sentiment",
        "--method=houlsby",
        "--epochs=1",
        "--max_train_examples=32",
        "--overwrite",
        f"--model_dir={folder}",
    ]


def measure(turns, folder):
    """Returns {name: [(seconds on the clock, of the processor), ...]}."""
    run, encoder = Path(folder) / "run", minilm.minilm_folder()
    seconds_of(train_command(run))
    commands = {
        "import and load": [sys.executable, "-c", LOADS, encoder],
        "predict": [*COMMAND, "predict", run, "a fine film"],
        "train, to the first step": [
            *train_command(Path(folder) / "first"),
            ENDS_EARLY,
        ],
        "train, one batch": train_command(Path(folder) / "again"),
    }
    seconds = {name: [] for name in commands}
    for _ in range(turns):
        for name, command in commands.items():
            seconds[name].append(seconds_of(command))
    return seconds


def report(seconds):
    """Prints the medians of each command, and their ratios to the first."""
    print("| | clock, s | processor, s | ratio of clocks | of processors |")
    print("|---|---|---|---|---|")
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in seconds.items()
    }
    least = medians["import and load"]
    for name, (wall, processor) in medians.items():
        print(
            f"| {name} | {wall:.1f} | {processor:.1f} | {wall / least[0]:.2f} "
            f"| {processor / least[1]:.2f} |"
        )


def rows_of(seconds):
    """Returns a row for each command and clock, compared with the first."""
    (least, base), *others = seconds.items()
    return [
        measurements.row(
            f"{name}, {clock}",
            "s",
            [values[place] for values in found],
            [values[place] for values in base],
            least,
        )
        for name, found in others
        for place, clock in enumerate(("clock", "processor time"))
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--turns", type=int, default=3)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        seconds = measure(arguments.turns, folder)
    report(seconds)
    measurements.write(arguments.output, rows_of(seconds))


if __name__ == "__main__":
    main()
