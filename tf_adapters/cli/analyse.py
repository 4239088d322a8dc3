"""`tf-adapters analyse <name>`: a table and a picture of finished runs."""

import argparse
import importlib
import inspect
from pathlib import Path
import pkgutil

from tf_adapters import analysis
from tf_adapters.analysis.analysis import ANALYSES
from tf_adapters.cli import errors as cli_errors
from tf_adapters.common.extras import needs_extra


def run(arguments):
    """Runs one analysis; returns the exit status.

    Writes `<name>.csv` and `<name>.png` into the folder that is analysed, the
    first of several, or to where `--output` says.

    Args:
        arguments: List of strings, what stands behind `analyse`.
    """
    return cli_errors.exit_status(_run, arguments)


def _run(arguments):
    _import_all()
    options = _parser().parse_args(arguments)
    for path in _write(ANALYSES[options.name], options):
        print(path)


def _import_all():
    with needs_extra("studies", "An analysis"):
        for module in pkgutil.iter_modules(analysis.__path__):
            importlib.import_module(f"{analysis.__name__}.{module.name}")


def _parser():
    parser = argparse.ArgumentParser(
        prog="tf-adapters analyse", description=__doc__
    )
    commands = parser.add_subparsers(dest="name", required=True, metavar="name")
    for name, one in sorted(ANALYSES.items()):
        text = inspect.getdoc(one)
        command = commands.add_parser(
            name,
            help=text.splitlines()[0],
            description=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_flags(command, one)
    return parser


def _add_flags(parser, one):
    flag, words = {
        "model_dir": ("--model_dir", "run folder"),
        "model_dirs": ("--model_dir", "run folders, with commas between"),
        "study_dir": ("--study_dir", "folder of a study"),
    }[one.reads]
    several = one.reads == "model_dirs"
    parser.add_argument(
        flag,
        dest="folders",
        required=True,
        help=words,
        type=lambda text: text.split(",") if several else [text],
    )
    parser.add_argument(
        "--output", help="path without ending; default: in the folder analysed"
    )
    parser.add_argument("--format", choices=("png", "svg"), default="png")
    one.add_flags(parser)


def _write(one, options):
    """Yields the paths of what was written; prints the table."""
    table = one.table(options)
    output = Path(options.output or f"{options.folders[0]}/{options.name}")
    output.parent.mkdir(parents=True, exist_ok=True)
    table.to_csv(f"{output}.csv", index=False, float_format="%.6g")
    print(table.to_markdown(index=False, floatfmt=".4g"))
    yield f"{output}.csv"
    one.draw(table).savefig(f"{output}.{options.format}", dpi=150)
    yield f"{output}.{options.format}"
