"""What is lost when the least activated adapters leave a trained fusion.

    python -m tf_adapters.analysis.fusion_pruning --model_dir=runs/mrpc_fusion
    python -m tf_adapters.analysis.fusion_pruning --model_dir=runs/mrpc_fusion \
        --keep=2 --output=runs/mrpc_fusion_2

Ranks the members by their softmax weight, averaged over the tokens of the
training set and over all places of the fusion, then takes the last one out,
the last two, and so on, and evaluates each on the validation set (Pfeiffer et
al. 2021, section 8.2, after Rueckle et al. 2021, arXiv:2010.11918). Speeds are
as in `adapter_drop`. Writes `<model_dir>/fusion_pruning.csv` and `.png`; with
`--keep` also a run folder of the smaller fusion, which
`--mode=eval|predict|export` take.
"""

import argparse
import dataclasses
from pathlib import Path
import sys

import numpy as np

from tf_adapters.analysis import csv_files
from tf_adapters.analysis import fusion_activations
from tf_adapters.analysis import speeds
from tf_adapters.common.errors import UserError
from tf_adapters.common.extras import needs_extra
from tf_adapters.models import fusion_model

COLUMNS = ("kept", "adapters", "metric", "value", "speed", "low", "high")
_TIMED_ROWS = 256
# The picture shows at least so much of the metric: less is noise drawn large.
_LEAST_RANGE = 0.1


def ranking(weights, names):
    """Returns members' names, the most activated first.

    Args:
        weights: What `fusion_activations.mean_weights` returns.
        names: The members' names in their order in the fusion.
    """
    means = np.mean(list(weights.values()), axis=0)
    return [names[place] for place in np.argsort(-means, kind="stable")]


def table(experiment, ranked, rows, turns=5):
    """Returns rows of `COLUMNS`, from all members to one.

    Args:
        experiment: `Experiment` of the whole fusion.
        ranked: What `ranking` returns.
        rows: Validation rows.
        turns: How often each is timed, each time after the whole fusion.
    """
    examples = experiment.examples(rows)
    few = experiment.examples(rows[:_TIMED_ROWS])
    metric = experiment.task.metrics[0]
    results = []
    for kept in range(len(ranked), 0, -1):
        names, speed = ranked[:kept], (1.0, 1.0, 1.0)
        trainer = experiment.trainer
        if kept < len(ranked):
            trainer = _trainer(
                experiment, fusion_model.pruned(experiment.model, names)
            )
            whole = experiment.trainer, few
            speed = speeds.beside(whole, (trainer, few), turns)
        value = trainer.evaluate(examples)[metric]
        results.append((kept, " ".join(names), metric, value, *speed))
    return results


def _trainer(experiment, model):
    return type(experiment.trainer)(
        model, experiment.strategy, experiment.config, experiment.task.metrics
    )


def plot(rows, path):
    """Draws the metric against the number of adapters that are left.

    Args:
        rows: What `table` returns.
        path: Image file to write.
    """
    with needs_extra("studies", "A picture"):
        import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(5, 3.2), layout="constrained")
    axes = figure.subplots()
    kept = [row[0] for row in rows]
    values = [row[3] for row in rows]
    axes.plot(kept, values, marker="o")
    middle = (min(values) + max(values)) / 2
    half = 0.55 * max(_LEAST_RANGE, np.ptp(values))
    axes.set_ylim(middle - half, middle + half)
    axes.set_xticks(kept)
    axes.set_xlabel("adapters left in the fusion")
    axes.set_ylabel(f"validation {rows[0][2]}")
    axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)


def save(experiment, names, folder, value):
    """Writes the run folder of a smaller fusion."""
    from tf_adapters.runs.run_folder import RunFolder

    method = experiment.config.method
    folders = dict(
        zip(experiment.model.method.adapters, method.adapters, strict=True)
    )
    kept = [name for name in folders if name in names]
    method = dataclasses.replace(
        method, adapters=tuple(folders[name] for name in kept), subset=None
    )
    config = dataclasses.replace(experiment.config, method=method)
    metric = experiment.task.metrics[0]
    details = {
        "task": experiment.task.name,
        "max_length": config.data.max_length,
        "validation": {metric: value},
    }
    run = RunFolder(folder, config, {})
    run.save_adapter(fusion_model.pruned(experiment.model, kept), details)


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model_dir", required=True, help="run of a fusion")
    parser.add_argument("--keep", type=int, help="how many adapters to keep")
    parser.add_argument("--output", help="run folder to write, with --keep")
    parser.add_argument("--turns", type=int, default=5, help="timings of each")
    options = parser.parse_args(arguments)
    if (options.keep is None) != (options.output is None):
        parser.error("--keep and --output go together")
    try:
        _run(options)
    except UserError as error:
        sys.exit(f"Error: {error}")


def _run(options):
    experiment, splits = fusion_activations.load_run(options.model_dir)
    weights = fusion_activations.of_experiment(experiment, splits["train"])
    ranked = ranking(weights, experiment.model.method.adapters)
    _check(options.keep, len(ranked))
    rows = table(experiment, ranked, splits["validation"], options.turns)
    output = Path(options.model_dir) / "fusion_pruning"
    csv_files.write_csv(f"{output}.csv", COLUMNS, rows)
    plot(rows, f"{output}.png")
    for kept, names, metric, value, speed, low, high in rows:
        print(
            f"{kept}: {metric} {value:.4f}, {speed:.2f} times as fast "
            f"({low:.2f}-{high:.2f}), {names}"
        )
    print(f"{output}.csv\n{output}.png")
    if options.keep is not None:
        value = rows[len(ranked) - options.keep][3]
        save(experiment, ranked[: options.keep], options.output, value)
        print(options.output)


def _check(keep, number):
    if keep is not None and not 1 <= keep <= number:
        raise UserError(
            f"--keep must be one of 1 to {number}, the number of adapters. "
            f"Received: {keep}"
        )


if __name__ == "__main__":
    main()
