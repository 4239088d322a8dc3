"""Converts a run's result to rows. A study's tables are computed from them."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.data.rows.splits import EVALUATED
from tf_adapters.papers.studies.grid import plan as study_plan

if TYPE_CHECKING:
    from tf_adapters.launch.planned_run import Run


# Keys of a result whose numbers are averaged over seeds.
REPORTED = ("method_report", "pretraining")
WEIGHTS_AND_SECONDS = (
    *("trained_weights", "head_weights", "encoder_weights", "seconds"),
)
_NUMBERS = (*WEIGHTS_AND_SECONDS, "best_step", "mean_metric")


def run_rows(
    run: Run, result: dict[str, Any] | None, error: str = ""
) -> list[Any]:
    """Returns a flat dict for each task of a run.

    A run has one task, or several with the method `multitask`.

    Args:
        run: `Run`.
        result: The run's `result.json`, or `None` if the run is not finished.
        error: The reason why the run failed, or "".

    Raises:
        UserError: If the result lacks the metric that selected its weights.
    """
    rows = []
    for task, metric in run.metrics.items():
        # `run.point` has no task if the run has several tasks, or if the
        # study's `base` sets the task.
        point = {"task": task, **run.point}
        if len(run.metrics) > 1:
            point["task"] = task
        state = "failed" if error else "missing"
        row = {"run": run.id, "state": state, **point, "metric": metric}
        if result is None:
            rows.append({**row, "error": error})
            continue
        own = result if len(run.metrics) == 1 else _of_task(result, task)
        row |= _finished_row(run, task, metric, own)
        if row["selection"] is None:
            raise UserError(
                f"The result.json of run {run.id} lacks the metric of task "
                f"`{task}` on validation that its weights were chosen by: it "
                "is damaged. Remove it to train the run again."
            )
        rows.append(row)
    return rows


def _of_task(result: dict[str, Any], task: str) -> dict[Any, Any]:
    """Returns one task's part of the `result.json` of a multitask run."""
    return {
        **result,
        **result.get("tasks", {}).get(task, {}),
        "data_fingerprint": result.get("data_fingerprint", {}).get(task, {}),
    }


def _finished_row(
    run: Any, task: str, metric: Any, result: dict[str, Any]
) -> dict[str, Any]:
    row: dict[str, Any] = {"state": "finished"}
    transfer = _transfer(result)
    for split in EVALUATED:
        row[split] = _value_of(metric, split, result, transfer)
    selecting = study_plan.selecting_metric(run.config, task)
    row["selection"] = result.get("validation", {}).get(selecting)
    row |= {key: result.get(key) for key in _NUMBERS} | _provenance(result)
    parts = {split: result.get(split, {}) for split in EVALUATED}
    parts |= {part: result.get(part, {}) for part in REPORTED}
    for part, values in {**parts, "transfer": transfer}.items():
        row |= {f"{part}/{key}": value for key, value in values.items()}
    low_resource = run.config.data.low_resource
    row["data"] = f"{task}, seed {run.config.seed}, {low_resource}"
    fingerprint = result.get("data_fingerprint", {}).get("validation")
    row["validation_fingerprint"] = fingerprint
    return {**row, "error": ""}


def _value_of(
    metric: Any, split: Any, result: dict[str, Any], transfer: Any
) -> Any:
    """Returns the value of a metric in a run's result.

    `split` has no effect for `mean_metric`, `transfer/*` and `method_report/*`.
    """
    if metric == "mean_metric":
        return result.get(metric)
    part, _, name = metric.partition("/")
    if part == "transfer":
        return transfer.get(name)
    if part == "method_report":
        return result.get(part, {}).get(name)
    return result.get(split, {}).get(metric)


def _transfer(result: dict[str, Any]) -> dict[Any, Any]:
    """Returns the metrics of cross-lingual transfer in a run's result.

    The keys are languages and names of averages over languages.
    """
    found = result.get("transfer")
    if found is None:
        return {}
    averages = {k: v for k, v in found.items() if isinstance(v, float)}
    return averages | {
        language: values[found["metric"]]
        for language, values in found["languages"].items()
    }


def _provenance(result: dict[str, Any]) -> dict[str, Any]:
    commit = result.get("commit")
    versions = result.get("versions", {})
    return {
        "commit": commit,
        "changed": commit is None or commit.endswith("+changes"),
        "versions": ", ".join(f"{k} {v}" for k, v in versions.items()),
        "device": result.get("device"),
    }
