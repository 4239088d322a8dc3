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

    summary.print_evaluation(
        finished_run.evaluate_run(config, model_dir), config
    )
    if not config.data.eval_languages:
        _report(model_dir)


def _report(model_dir: Path) -> None:
    """Prints and writes a run's report. If that fails, prints the reason."""
    from tf_adapters.report import run_report

    try:
        print(f"\n{run_report.describe(model_dir)}\n")
        paths = run_report.write_report(model_dir)
    except (OSError, UserError) as error:
        print(f"No report was written: {cut(error)}", file=sys.stderr)
        return
    print(f"report: {paths['report']}")


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
            *("encoder", "precision", "stack_on", "distribution_strategy"),
            *("tpu", "config_file", "params_override", "plugin", "verbose"),
            *("quantize", "backend"),
        ),
    },
    run=run_eval,
    defaults=dict.fromkeys(
        ("encoder", "precision", "max_length", "data_dir"), "the run's"
    ),
)
