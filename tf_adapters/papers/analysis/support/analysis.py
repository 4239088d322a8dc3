"""The contract of an analysis, and the registry of all.

An analysis reads finished runs, makes a table, and draws it. It never trains.
"""

from tf_adapters.common.errors import UserError

# Name to an `Analysis`; `register` fills it.
ANALYSES = {}


class Analysis:
    """One table and its picture.

    The class's docstring is what `tf-adapters analyse <name> --help` shows:
    what is computed, and where in which paper.
    """

    # Its input: "model_dir", one run folder; "model_dirs", one or several; or
    # "study_dir", the folder of a study.
    reads = "model_dir"

    def add_flags(self, parser):
        """Adds flags of its own to an `argparse` parser."""

    def table(self, options):
        """Returns a `pandas.DataFrame`, a row for each number or group of them.

        Args:
            options: Flags by name; `options.folders` is the list of folders.

        Raises:
            UserError: If a folder has nothing to analyze.
        """
        raise NotImplementedError

    def draw(self, table):
        """Returns a `matplotlib` figure of what `table` returned."""
        raise NotImplementedError


def add_split(parser):
    """Adds the flag `--split`: the split whose metric is read."""
    parser.add_argument(
        "--split", choices=("validation", "test"), default="validation"
    )


def names(text):
    """Returns the names in a text, separated by commas."""
    return [name for name in text.split(",") if name]


def register(name):
    """Returns a decorator that registers an `Analysis` under a name."""

    def decorate(cls):
        if name in ANALYSES:
            raise UserError(f"There is an analysis `{name}` already.")
        ANALYSES[name] = cls()
        return cls

    return decorate
