"""`tf-adapters analyse <name>`: a table and a picture of finished runs."""

from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli.command import Command


def run(arguments):
    """Runs one analysis; returns the exit status.

    Writes `<name>.csv` and `<name>.png` into the folder that is analysed, the
    first of several, or to where `--output` says.

    Args:
        arguments: List of strings, what stands behind `analyse`.
    """
    return cli_errors.exit_status(_run, arguments)


def _run(arguments):
    # Here, so that the help of all commands answers at once.
    from tf_adapters.papers.analysis.support import make
    from tf_adapters.papers.analysis.support.analysis import ANALYSES

    make.load_all()
    options = make.make_parser().parse_args(arguments)
    for path in _write(make, ANALYSES[options.name], options):
        print(path)


def _write(make, one, options):
    """Yields the paths of what was written; prints the table."""
    table = one.table(options)
    output = options.output or f"{options.folders[0]}/{options.name}"
    path = make.write_table(table, output)
    print(table.to_markdown(index=False, floatfmt=".4g"))
    yield path
    yield make.write_picture(one, table, output, options.format)


# An analysis has flags of its own, which its class declares: see
# `Analysis.add_flags`. So `flags` hands the arguments over as they are.
COMMAND = Command(
    name="analyse",
    summary="Makes a table and a picture of finished runs or of a study; "
    "`tf-adapters analyse --help` lists all analyses.",
    usage="NAME",
    examples=("tf-adapters analyse curves --model_dir=runs/sst2",),
    groups={},
    run=lambda options, layer, arguments: _run(arguments),
)
