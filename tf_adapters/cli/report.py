"""`tf-adapters report RUN`: writes a report on a finished run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run
from tf_adapters.config import plugins
from tf_adapters.runs import remote_folder


def run_report(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Writes the report on a run and prints the paths of its files.

    See `Command.run` for the arguments.
    """
    options = on_run("report", options, arguments)
    plugins.load_plugins(options.plugin)
    # Imported here, so that --help is fast.
    from tf_adapters.report import run_report

    folder = remote_folder.local(options.model_dir)
    data_dir = layer.get("data", {}).get("data_dir")
    paths = run_report.write_report(folder, data_dir=data_dir)
    for path in paths.values():
        print(path)


COMMAND = Command(
    name="report",
    summary="Writes a report of a finished run: tables and pictures.",
    usage="RUN",
    examples=("tf-adapters report runs/reviews_pfeiffer_0",),
    groups={
        "Data, where it has moved": ("data_dir",),
        "Output": ("plugin", "verbose"),
    },
    run=run_report,
    defaults={"data_dir": "the run's"},
)
