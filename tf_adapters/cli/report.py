"""`tf-adapters report RUN`: tables and pictures of one finished run."""

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run
from tf_adapters.runs import remote_folder


def run(options, layer, arguments):
    """Writes the report of the run that is named, and prints the paths."""
    options = on_run("report", options, arguments)
    # Here, so that --help answers at once.
    from tf_adapters.report import run_report

    folder = remote_folder.local(options.model_dir)
    for path in run_report.write_report(folder).values():
        print(path)


COMMAND = Command(
    name="report",
    summary="Writes a report of a finished run: tables and pictures.",
    usage="RUN",
    examples=("tf-adapters report runs/reviews_houlsby_0",),
    groups={"Output": ("verbose",)},
    run=run,
)
