"""Base class and registry of analyses.

An analysis reads finished runs, makes a table, and draws it. It does not train.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

# Dict from name to `Analysis`, filled by `register`.
ANALYSES = {}


class Analysis:
    """Base class of analyses, which compute a table from runs and draw it.

    `tf-adapters analyse <name> --help` shows the class's docstring, which
    describes the computation and names the paper's table or figure.
    """

    # The analysis's input: "model_dir" for one run folder, "model_dirs" for one
    # or several, or "study_dir" for the folder of a study.
    reads = "model_dir"

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        """Adds the flags of this analysis to an `argparse` parser."""

    def table(self, options: Any) -> None:
        """Returns the results as a `pandas.DataFrame`.

        Args:
            options: Object with an attribute for each flag, and the list
                `folders`.

        Raises:
            UserError: If a folder has nothing to analyze.
        """
        raise NotImplementedError

    def draw(self, table: Any) -> None:
        """Returns a `matplotlib` figure of the table that `table` returned."""
        raise NotImplementedError


def add_split(parser: argparse.ArgumentParser) -> None:
    """Adds the flag `--split`, the data split on which metrics are measured."""
    parser.add_argument(
        "--split", choices=("validation", "test"), default="validation"
    )


def names(text: Any) -> list[Any]:
    """Splits a string of names at commas and returns them as a list."""
    return [name for name in text.split(",") if name]


def at_least_one(text: str) -> int:
    """Converts a flag's text to a whole number that is 1 or larger."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"`{cut(text)}` is not a whole number of at least 1"
        )
    return int(text)


def register(name: str) -> Callable[..., Any]:
    """Returns a class decorator that registers an `Analysis` under a name."""

    def decorate(cls: Any) -> Any:
        if name in ANALYSES:
            raise UserError(f"There is an analysis `{name}` already.")
        ANALYSES[name] = cls()
        return cls

    return decorate
