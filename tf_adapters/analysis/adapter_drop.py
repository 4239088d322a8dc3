"""What is lost, and how much time is won, without the adapters of some blocks.

    python -m tf_adapters.analysis.adapter_drop --model_dir=runs/mrpc_fusion

Takes the adapters, or the fusion, out of the first k blocks of a trained run,
and out of the last k, for every k, without training again, and evaluates each
on the validation set (Rueckle et al. 2021, arXiv:2010.11918, sections 3 and 4;
the outlook of Pfeiffer et al. 2021, section 8.2). Speeds are those of inference
beside the whole model's, the two in turn on 256 examples at most: the median
over the turns, and its middle half. Writes `<model_dir>/adapter_drop.csv` and
`.png`. `--params_override=method.leave_out=[0,1]` does the same to a run in
`--mode=eval|predict|export`, and in training.
"""

import argparse
import dataclasses
import functools
from pathlib import Path
import sys

import numpy as np

from tf_adapters.analysis import csv_files
from tf_adapters.analysis import speeds
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.extras import needs_extra

COLUMNS = ("blocks", "left_out", "metric", "value", "speed", "low", "high")
_TIMED_ROWS = 256


def variants(blocks):
    """Returns `(which, blocks)` for the whole model and all that are smaller.

    Args:
        blocks: Tuple of the numbers of the blocks with adapters, ascending.
    """
    some = range(1, len(blocks) + 1)
    first = [("first", blocks[:k]) for k in some]
    last = [("last", blocks[-k:]) for k in some]
    return [("none", ()), *first, *last[:-1]]


def table(make, rows, turns=5):
    """Returns rows of `COLUMNS`, the whole model's first.

    Args:
        make: Function from the blocks that are left out to an `Experiment`,
            of which two at a time are held.
        rows: Validation rows.
        turns: How often each is timed, each time after the whole model.
    """
    whole = make(())
    timed = _timed(whole, rows)
    found = []
    slots = whole.model.slots
    there = tuple(i for i, of_block in enumerate(slots) if of_block)
    for which, blocks in variants(there):
        experiment = make(blocks) if blocks else whole
        metric = experiment.task.metrics[0]
        value = experiment.trainer.evaluate(experiment.examples(rows))[metric]
        speed = (1.0, 1.0, 1.0)
        if experiment is not whole:
            speed = speeds.beside(timed, _timed(experiment, rows), turns)
        found.append((which, len(blocks), metric, value, *speed))
    return found


def _timed(experiment, rows):
    return experiment.trainer, experiment.examples(rows[:_TIMED_ROWS])


def plot(rows, path):
    """Draws the metric and the speed against the number of blocks.

    Args:
        rows: What `table` returns.
        path: Image file to write.
    """
    with needs_extra("studies", "A picture"):
        import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(7, 3), layout="constrained")
    metric, speed = figure.subplots(1, 2)
    (whole,) = [row for row in rows if row[0] == "none"]
    everything = max(rows, key=lambda row: row[1])
    for which in ("first", "last"):
        some = [row for row in rows if row[0] == which]
        # Without all of them there are neither first nor last ones.
        line = sorted({whole, *some, everything}, key=lambda row: row[1])
        left_out = [row[1] for row in line]
        metric.plot(left_out, [row[3] for row in line], "o-", label=which)
        middle, low, high = np.array([row[4:] for row in line]).T
        spread = (middle - low, high - middle)
        speed.errorbar(left_out, middle, spread, fmt="o-", capsize=2)
    # A turn that the machine was disturbed in must not set the scale.
    speed.set_ylim(0, 1.3 * max(row[4] for row in rows))
    metric.set_ylabel(f"validation {whole[2]}")
    speed.set_ylabel("speed, whole model = 1")
    for axes in (metric, speed):
        axes.set_xlabel("blocks without adapters")
        axes.grid(alpha=0.3)
    metric.legend()
    figure.savefig(path, dpi=150)


def load(model_dir):
    """Returns what `table` takes, and the validation rows, of a run."""
    from tf_adapters.config import resolve
    from tf_adapters.data.rows import splits

    config = resolve.resolve_config(
        resolve.load_for_one_machine(Path(model_dir) / "config.yaml")
    )
    fields = {field.name for field in dataclasses.fields(config.method)}
    if "leave_out" not in fields:
        raise ConfigError(
            f"{model_dir} was trained with a method that adds nothing to the "
            "blocks, so there is nothing to leave out."
        )
    task = splits.get_task(config)
    rows = splits.load_rows(config, task)["validation"]
    make = functools.partial(_experiment, config, task, model_dir)
    return make, rows


def _experiment(config, task, model_dir, blocks):
    """Returns the run with an encoder of its own: its norms may be trained."""
    from tf_adapters.runs.experiment import Experiment

    left_out = tuple(sorted({*config.method.leave_out, *blocks}))
    method = dataclasses.replace(config.method, leave_out=left_out)
    config = dataclasses.replace(config, method=method)
    return Experiment(config, task, Path(model_dir) / "adapter")


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model_dir", required=True, help="run folder")
    parser.add_argument("--turns", type=int, default=5, help="timings of each")
    options = parser.parse_args(arguments)
    try:
        make, validation = load(options.model_dir)
        rows = table(make, validation, options.turns)
    except UserError as error:
        sys.exit(f"Error: {error}")
    output = Path(options.model_dir) / "adapter_drop"
    csv_files.write_csv(f"{output}.csv", COLUMNS, rows)
    plot(rows, f"{output}.png")
    for which, number, metric, value, speed, low, high in rows:
        blocks = f"{which} {number} left out" if number else "whole model"
        print(
            f"{blocks}: {metric} {value:.4f}, {speed:.2f} times as fast "
            f"({low:.2f}-{high:.2f})"
        )
    print(f"{output}.csv\n{output}.png")


if __name__ == "__main__":
    main()
