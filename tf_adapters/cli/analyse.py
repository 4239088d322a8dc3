"""`tf-adapters analyse NAME`: makes a table and a picture of finished runs."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli.command import Command


def run_analysis(arguments: Sequence[str]) -> Any:
    """Runs the analysis that a command line names; returns the exit status.

    Writes `<name>.csv` and `<name>.png` to the analyzed folder (the first one,
    if there are several), or to the path in `--output`. With `--format=svg`,
    the picture is an SVG file.

    Args:
        arguments: List of strings: the command line after `analyse`.
    """
    return cli_errors.exit_status(_run, arguments)


def _run(arguments: Sequence[str]) -> None:
    # Imported here, so that the help of other commands is fast.
    from tf_adapters.papers.analysis.support import make
    from tf_adapters.papers.analysis.support.analysis import ANALYSES

    make.load_all()
    options = make.make_parser().parse_args(arguments)
    for path in _write(make, ANALYSES[options.name], options):
        print(path)


def _write(make: Any, one: Any, options: Any) -> Iterator[Any]:
    """Prints an analysis's table, and writes it and the picture to files.

    Yields the paths of the files.

    Args:
        make: The module `papers.analysis.support.make`.
        one: `Analysis`.
        options: Object with the values of the analysis's flags.
    """
    table = one.table(options)
    output = options.output or f"{options.folders[0]}/{options.name}"
    path = make.write_table_csv(table, output)
    print(table.to_markdown(index=False, floatfmt=".4g"))
    yield path
    yield make.write_picture(one, table, output, options.format)


# Each analysis declares its own flags, see `Analysis.add_flags`. So the module
# `flags` does not parse the arguments of this subcommand.
COMMAND = Command(
    name="analyse",
    summary="Makes a table and a picture of finished runs or of a study; "
    "`tf-adapters analyse --help` lists all analyses.",
    usage="NAME",
    examples=("tf-adapters analyse curves --model_dir=runs/sst2",),
    groups={},
    run=lambda options, layer, arguments: _run(arguments),
)
