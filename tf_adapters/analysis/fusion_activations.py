"""How much a trained fusion uses each adapter, by layer.

    python -m tf_adapters.analysis.fusion_activations \
        --model_dir=runs/rte_fusion,runs/mrpc_fusion --output=activations

The softmax weight of each adapter, averaged over all tokens of the development
set, for each block and target task: Pfeiffer et al. 2021, section 6, figures 4
and 6. Writes `<output>.csv` and `<output>.png`.
"""

import argparse
from pathlib import Path
import sys

import numpy as np

from tf_adapters.analysis import csv_files
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.common.extras import needs_extra

COLUMNS = ("task", "block", "slot", "adapter", "weight")


def mean_weights(model, batches):
    """Returns the mean weight of each member in each slot of a fusion.

    Args:
        model: `AdapterModel` with `methods.Fusion`.
        batches: Iterable of feature dicts, see `pipeline.dataset`.

    Returns:
        Dict from `(block, slot)` to an array of one weight a member. Tokens
        that are padding do not count.
    """
    import tensorflow as tf

    from tf_adapters.models.adapter_model import as_sequences

    @tf.function(reduce_retracing=True)
    def step(features):
        # Of choices those that are none have no tokens and do not count.
        inputs = as_sequences({key: features[key] for key in _inputs(features)})
        outputs = model.encoder(inputs, training=False, return_probes=True)
        mask = tf.cast(inputs["padding_mask"], "float32")[:, :, None]
        return tf.reduce_sum(mask), {
            (block, slot): tf.reduce_sum(
                mask * tf.cast(probe["fusion_weights"], "float32"), axis=(0, 1)
            )
            for block, probes in enumerate(outputs["probes"])
            for slot, probe in probes.items()
            if "fusion_weights" in probe
        }

    tokens, sums = 0.0, {}
    for features in batches:
        count, weights = step(features)
        tokens += float(count)
        for place, value in weights.items():
            sums[place] = sums.get(place, 0) + value.numpy().astype("float64")
    return {place: value / tokens for place, value in sums.items()}


def _inputs(features):
    known = ("token_ids", "padding_mask", "segment_ids")
    return [key for key in known if key in features]


def table(weights, members):
    """Returns rows of `COLUMNS`.

    Args:
        weights: Dict from task to what `mean_weights` returns.
        members: Dict from task to the names of its fusion's members.
    """
    return [
        (task, block, slot, adapter, float(weight))
        for task, places in weights.items()
        for (block, slot), values in places.items()
        for adapter, weight in zip(members[task], values, strict=True)
    ]


def plot(rows, path):
    """Draws a heatmap for each block and slot: tasks by adapters.

    White is a weight of 1, black of 0, as in the paper's figure 4.

    Args:
        rows: What `table` returns.
        path: Image file to write.
    """
    with needs_extra("studies", "A picture"):
        import matplotlib.figure

    places = sorted({(row[1], row[2]) for row in rows})
    tasks = list(dict.fromkeys(row[0] for row in rows))
    adapters = list(dict.fromkeys(row[3] for row in rows))
    lines = -(-len(places) // 4)
    columns = -(-len(places) // lines)
    size = 1.2 + 0.45 * len(adapters), 1.3 + 0.4 * len(tasks)
    figure = matplotlib.figure.Figure(
        figsize=(columns * size[0] + 1.5, lines * size[1] + 0.5),
        layout="constrained",
    )
    axes = figure.subplots(
        lines, columns, squeeze=False, sharex=True, sharey=True
    )
    several = len({slot for _, slot in places}) > 1
    image = None
    for axis, place in zip(axes.flat, places, strict=False):
        grid = np.full((len(tasks), len(adapters)), np.nan)
        for task, block, slot, adapter, weight in rows:
            if (block, slot) == place:
                grid[tasks.index(task), adapters.index(adapter)] = weight
        image = axis.imshow(grid, cmap="gray", vmin=0, vmax=1, aspect="auto")
        axis.set_facecolor("#c8d8e8")  # Not among this fusion's members.
        block, slot = place
        words = slot.replace("_", " ")
        axis.set_title(f"layer {block + 1}" + several * f", {words}", size=9)
        axis.set_xticks(range(len(adapters)), adapters, rotation=90, size=8)
        axis.set_yticks(range(len(tasks)), tasks, size=8)
    for axis in axes.flat[len(places) :]:
        axis.set_visible(False)
    # Above a hidden one too; shared axes show names in the last line only.
    for axis in axes.flat[max(0, len(places) - columns) : len(places)]:
        axis.tick_params(labelbottom=True)
    figure.supxlabel("adapter", size=9)
    figure.supylabel("target task", size=9)
    figure.colorbar(image, ax=axes, label="mean weight")
    figure.savefig(path, dpi=150)


def load_run(model_dir):
    """Returns `Experiment` and rows by split of one run's fusion.

    Raises:
        ConfigError: If the folder is no run of a fusion.
    """
    from tf_adapters import methods
    from tf_adapters.config import resolve
    from tf_adapters.data.rows import splits
    from tf_adapters.runs.experiment import Experiment

    path = Path(model_dir) / "config.yaml"
    config = resolve.resolve_config(resolve.load_for_one_machine(path))
    if not isinstance(config.method, methods.Fusion):
        raise ConfigError(
            f"{model_dir} was trained with another method than fusion, so it "
            "has no activations to show."
        )
    task = splits.get_task(config)
    rows = splits.load_rows(config, task)
    return Experiment(config, task, Path(model_dir) / "adapter"), rows


def of_experiment(experiment, rows):
    """Returns what `mean_weights` returns for an experiment's fusion."""
    from tf_adapters.data.batches import pipeline

    examples = experiment.examples(rows, labelled=False)
    plan = pipeline.plan_evaluation(
        examples.lengths, experiment.config.train.eval_batch_size
    )
    return mean_weights(experiment.model, pipeline.dataset(examples, plan))


def _of_runs(folders):
    """Returns what `table` takes; runs of one task go by their folders."""
    runs = [(folder, *load_run(folder)) for folder in folders]
    tasks = [experiment.task.name for _, experiment, _ in runs]
    weights, members = {}, {}
    for task, (folder, experiment, rows) in zip(tasks, runs, strict=True):
        name = task if tasks.count(task) == 1 else folder
        weights[name] = of_experiment(experiment, rows["validation"])
        members[name] = _labels(experiment.model.members)
    return weights, members


def _labels(members):
    """Returns the members' tasks, or their names where two have one task."""
    tasks = [
        adapter_folder.read_adapter_config(member.folder)["details"].get("task")
        for member in members
    ]
    if None not in tasks and len(set(tasks)) == len(tasks):
        return tasks
    return [member.name for member in members]


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--model_dir", required=True, help="run folders, with commas between"
    )
    parser.add_argument(
        "--output", help="default: <first run>/fusion_activations"
    )
    options = parser.parse_args(arguments)
    folders = options.model_dir.split(",")
    output = options.output or f"{folders[0]}/fusion_activations"
    try:
        weights, members = _of_runs(folders)
    except UserError as error:
        sys.exit(f"Error: {error}")
    rows = table(weights, members)
    csv_files.write_csv(f"{output}.csv", COLUMNS, rows)
    plot(rows, f"{output}.png")
    print(f"{output}.csv\n{output}.png")


if __name__ == "__main__":
    main()
