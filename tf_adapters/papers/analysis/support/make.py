"""Runs an analysis and writes its table and picture."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
import importlib
import inspect
import io
from pathlib import Path
import pkgutil
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import own_files
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.extras import needs_extra
from tf_adapters.common.text_files import replace_text
from tf_adapters.papers import analysis
from tf_adapters.papers.analysis import attack
from tf_adapters.papers.analysis.support.analysis import ANALYSES

if TYPE_CHECKING:
    import pandas as pd


def load_all() -> None:
    """Imports every analysis, which registers it in `ANALYSES`."""
    with needs_extra("studies", "An analysis"):
        for package in (analysis, attack):
            for module in pkgutil.iter_modules(package.__path__):
                importlib.import_module(f"{package.__name__}.{module.name}")


def summary(one: Any) -> str:
    """Returns the first line of an analysis's docstring."""
    return (inspect.getdoc(one) or "").partition("\n")[0]


def make_parser(parser_class: Any = argparse.ArgumentParser) -> Any:
    """Returns the parser of the command line `tf-adapters analyse NAME`."""
    parser = parser_class(
        prog="tf-adapters analyse",
        description="A table and a picture of finished runs.",
        epilog="Example: tf-adapters analyse curves --model_dir=runs/sst2. "
        "Each analysis has a --help of its own.",
    )
    commands = parser.add_subparsers(dest="name", required=True, metavar="name")
    for name, one in sorted(ANALYSES.items()):
        command = commands.add_parser(
            name,
            help=summary(one),
            description=inspect.getdoc(one),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        _add_flags(command, one)
    return parser


def _add_flags(parser: argparse.ArgumentParser, one: Any) -> None:
    flag, words = {
        "model_dir": ("--model_dir", "run folder"),
        "model_dirs": ("--model_dir", "run folders, separated by commas"),
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
        "--output", help="path without ending; default: in the folder analyzed"
    )
    parser.add_argument("--format", choices=("png", "svg"), default="png")
    one.add_flags(parser)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        # A study that printed the help of a figure would end there.
        super().__init__(**options, add_help=False)

    def error(self, message: str) -> None:
        raise ConfigError(f"{message[0].upper()}{message[1:]}.")


def parse_options(
    name: str, flags: dict[str, Any], folders: Sequence[Any]
) -> Any:
    """Parses an analysis's flags. Returns the argument for `Analysis.table`.

    Args:
        name: Name of the analysis.
        flags: Dict from the analysis's flags to values. A list means values
            separated by commas, `True` a flag without a value, and `False` that
            the flag is not given.
        folders: List of folders to read.

    Raises:
        ConfigError: If there is no such analysis or flag, or if a value is
            wrong.
    """
    check_known("analysis", name, ANALYSES, ConfigError)
    arguments = [name]
    for key, value in flags.items():
        if isinstance(value, list | tuple):
            value = ",".join(map(str, value))
        if isinstance(value, bool):
            arguments += [f"--{key}"] * value
        else:
            arguments.append(f"--{key}={value}")
    flag = "study_dir" if ANALYSES[name].reads == "study_dir" else "model_dir"
    arguments.append(f"--{flag}=given")
    options = make_parser(_Parser).parse_args(arguments)
    # Not given as a flag, because the name of a folder can contain a comma.
    options.folders = [str(folder) for folder in folders]
    return options


def write_table_csv(table: pd.DataFrame, output: Any) -> Path:
    """Writes a table as a CSV file and returns the file's path.

    Args:
        table: `pandas.DataFrame`.
        output: Path without suffix.
    """
    path = Path(f"{output}.csv")
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_text(path, table.to_csv(index=False, float_format="%.6g"))
    return path


def write_picture(
    one: Any, table: Any, output: Any, ending: str = "png"
) -> Path:
    """Draws an analysis's table and returns the path of the picture.

    Args:
        one: `Analysis`.
        table: The table that the analysis returned.
        output: Path without suffix.
        ending: `"png"` or `"svg"`.
    """
    path = Path(f"{output}.{ending}")
    content = io.BytesIO()
    one.draw(table).savefig(content, format=ending, dpi=150)
    own_files.replace_file(path, content.getvalue())
    return path
