"""Shows how much a trained fusion uses each adapter, by layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

import pandas as pd

from tf_adapters.common.errors import ConfigError
from tf_adapters.interop import formats
from tf_adapters.interop import stored_adapter
from tf_adapters.papers.analysis.support import trained_run
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.report import drawing

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.papers.analysis.support.trained_run import TrainedRun
    from tf_adapters.runs.experiment import Experiment


COLUMNS = ("task", "block", "slot", "adapter", "weight")


def mean_weights(model: AdapterModel, batches: Iterable[Any]) -> dict[Any, Any]:
    """Returns the mean weight of each adapter in each slot of a fusion.

    Args:
        model: `AdapterModel` with `methods.Fusion`.
        batches: Iterable of feature dicts, see `pipeline.dataset`.

    Returns:
        Dict from `(block, slot)` to an array with the mean weight of each
        member over all tokens. Padding does not count.
    """
    import tensorflow as tf

    from tf_adapters.data.examples import encoder_inputs
    from tf_adapters.models.encoder_model import as_sequences

    @tf.function(reduce_retracing=True)
    def step(features: dict[str, Any]) -> tuple[Any, dict[Any, Any]]:
        # Empty choices that pad a row have no tokens and do not count.
        inputs = as_sequences(encoder_inputs(features))
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


def weight_rows(
    weights: dict[str, Any], members: dict[str, Any]
) -> list[tuple[str, Any, Any, Any, float]]:
    """Returns rows with `COLUMNS`, one for each task, slot and member.

    Args:
        weights: Dict from task to a result of `mean_weights`.
        members: Dict from task to the names of its fusion's members.
    """
    return [
        (task, block, slot, adapter, float(weight))
        for task, places in weights.items()
        for (block, slot), values in places.items()
        for adapter, weight in zip(members[task], values, strict=True)
    ]


def load_fusion(folder: Path) -> tuple[TrainedRun, Experiment]:
    """Returns the `TrainedRun` of a fusion, and its `Experiment`.

    Raises:
        ConfigError: If the folder is not a run of a fusion.
    """
    from tf_adapters import methods

    run = trained_run.load_run(folder)
    if not isinstance(run.config.method, methods.Fusion):
        raise ConfigError(
            f"{folder} was trained with another method than fusion, so it "
            "has no activations to show."
        )
    return run, run.experiment()


def of_experiment(experiment: Experiment, rows: Any) -> dict[Any, Any]:
    """Returns `mean_weights` of an experiment's fusion over the given rows."""
    from tf_adapters.data.batches import batch_plan
    from tf_adapters.data.batches import pipeline

    examples = experiment.examples(rows, labeled=False)
    plan = batch_plan.plan_evaluation(
        examples.lengths, experiment.config.train.eval_batch_size
    )
    return mean_weights(experiment.model, pipeline.dataset(examples, plan))


def _of_runs(folders: Any) -> pd.DataFrame:
    """Returns a table of the mean weights in several runs of fusions.

    The column `task` has the task of a run, or the folder of the run if another
    run has the same task and seed.
    """
    runs = [(folder, *load_fusion(folder)) for folder in folders]
    names = [(run.task.name, run.config.seed) for _, run, _ in runs]
    tables = []
    for (task, seed), (folder, run, experiment) in zip(
        names, runs, strict=True
    ):
        name = task if names.count((task, seed)) == 1 else str(folder)
        weights = of_experiment(experiment, run.rows["validation"])
        members = _labels(experiment.model.members)
        rows = weight_rows({name: weights}, {name: members})
        found = pd.DataFrame(rows, columns=COLUMNS)
        tables.append(found.assign(run=str(folder), seed=seed))
    return pd.concat(tables, ignore_index=True)


def _labels(members: Any) -> list[Any]:
    """Returns labels for a fusion's members: their tasks if these differ.

    Otherwise, or if a task is unknown, the labels are the members' names.
    """
    tasks = [_task_of(member) for member in members]
    if None not in tasks and len(set(tasks)) == len(tasks):
        return tasks
    return [member.name for member in members]


def _task_of(member: Any) -> str | None:
    stored = stored_adapter.find_stored(member.folder)
    if stored.format != formats.OURS:
        return None
    return stored.config["details"].get("task")


@register("fusion_activations")
class FusionActivations(Analysis):
    """Shows how much a trained fusion uses each adapter, by layer.

    Averages the softmax weight of each adapter over all tokens of the
    validation set and over seeds, for each block and target task (Pfeiffer et
    al. 2021, section 6, figures 4 and 6). White is a weight of 1; black is 0.
    """

    reads = "model_dirs"

    def table(self, options: Any) -> pd.DataFrame:
        return _of_runs(options.folders)

    def draw(self, table: Any) -> Any:
        places = list(table.groupby(["block", "slot"]).groups)
        tasks, adapters = table.task.unique(), table.adapter.unique()
        lines = -(-len(places) // 4)
        figure, axes = drawing.make_figure(
            lines,
            -(-len(places) // lines),
            width=1.4 + 0.45 * len(adapters),
            height=1.4 + 0.4 * len(tasks),
            sharex=True,
            sharey=True,
        )
        several = table.slot.nunique() > 1
        for axis, (block, slot) in zip(axes.flat, places, strict=False):
            here = table[(table.block == block) & (table.slot == slot)]
            means = here.groupby(["task", "adapter"], sort=False).weight
            grid = means.mean().unstack()
            grid = grid.reindex(index=tasks, columns=adapters)
            image = axis.imshow(
                grid, cmap="gray", vmin=0, vmax=1, aspect="auto"
            )
            axis.grid(False)
            axis.set_facecolor("#c8d8e8")  # Adapters that are not members.
            words = f", {slot.replace('_', ' ')}" if several else ""
            axis.set_title(f"layer {block + 1}{words}", size=9)
            axis.set_xticks(range(len(adapters)), adapters, rotation=90)
            axis.set_yticks(range(len(tasks)), tasks)
        for axis in axes.flat[len(places) :]:
            axis.set_visible(False)
        # Label the panel above a hidden one too, because shared axes label only
        # the last row.
        for axis in axes.flat[max(0, len(places) - axes.shape[1]) :]:
            axis.tick_params(labelbottom=True)
        figure.supxlabel("adapter", size=9)
        figure.supylabel("target task", size=9)
        figure.colorbar(image, ax=axes, label="mean weight")
        return figure
