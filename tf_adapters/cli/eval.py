"""`tf-adapters eval RUN`: computes the metrics of a finished run again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
import sys
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.runs import summary

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


def run_eval(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> Any:
    """Evaluates a run and returns the exit status.

    See `Command.run` for the arguments.
    """
    from tf_adapters.cli import main

    return main.run_command(layer, on_run("eval", options, arguments))


def eval_command(config: Config, model_dir: Path, options: Any) -> None:
    """Evaluates a run, prints its metrics, and writes its report.

    If `data.eval_languages` is set, writes no report.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        options: See `main.run_command`.
    """
    from tf_adapters.runs import finished_run

    metrics = finished_run.evaluate_run(config, model_dir)
    summary.print_evaluation(metrics, config)
    if not config.data.eval_languages:
        _report(model_dir, metrics)


def _report(model_dir: Path, metrics: dict[str, dict[str, float]]) -> None:
    """Prints and writes a run's report. If that fails, prints the reason.

    The report has the predictions that the run stored. If their metrics differ
    from `metrics`, a dict from split to the metrics of this evaluation, prints
    a line that says so.
    """
    from tf_adapters.report import run_files
    from tf_adapters.report import run_report

    try:
        run = run_files.read_run(model_dir)
        split = run.split or ""
        if split in metrics and _differ(run.metrics, metrics[split]):
            print(
                f"\nThe report below shows the {split} predictions that the "
                "run stored. This evaluation used other data or settings, so "
                "its metrics differ."
            )
        print(f"\n{run_report.describe(model_dir)}\n")
        paths = run_report.write_report(model_dir)
    except (OSError, UserError) as error:
        print(f"No report was written: {cut(error)}", file=sys.stderr)
        return
    print(f"report: {paths['report']}")


def _differ(stored: dict[str, float], found: dict[str, float]) -> bool:
    """Returns whether a metric differs by more than devices round."""
    return any(
        abs(stored[name] - found[name]) > 1e-3
        for name in stored.keys() & found.keys()
    )


COMMAND = Command(
    name="eval",
    summary="Evaluates a finished run on its validation and test data.",
    usage="RUN",
    examples=(
        "tf-adapters eval runs/reviews_pfeiffer_0",
        "tf-adapters eval runs/reviews_pfeiffer_0 --data=moved.csv",
        "tf-adapters eval runs/pos --eval_languages=de,hi",
    ),
    groups={
        "Data, where it has moved": (
            *("data", "validation", "test", "data_dir", "task_file", "task"),
            *("eval_languages", "max_length"),
        ),
        "Settings": (
            *("encoder", "precision", "stack_on", "adapters"),
            *(
                "distribution_strategy",
                "tpu",
                "config_file",
                "params_override",
                "plugin",
                "verbose",
            ),
            *("quantize", "backend"),
        ),
    },
    run=run_eval,
    defaults=dict.fromkeys(
        ("encoder", "precision", "max_length", "data_dir"), "the run's"
    ),
)
