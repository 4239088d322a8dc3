"""Writes in-memory tables to files that a run can read."""

from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import os
from pathlib import Path
import sys
import tempfile
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.runs import left_files
from tf_adapters.text import columns as text_columns
from tf_adapters.text import rows as text_rows

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


_MAX_REPORTED = 10
# Types that a label may have, so that JSON and CSV can store it.
_LABELS = str | int | float


# Maps each argument to the setting that names its file, and to the name of the
# file that is written if the argument is an in-memory table.
_FILES = {
    "data": ("file", "table"),
    "validation": ("validation_file", "validation"),
    "test": ("test_file", "test"),
}


@dataclasses.dataclass(frozen=True)
class TableFiles:
    """Files of a run's tables, including temporary files of tables in memory.

    Attributes:
        layer: Nested dict of settings that name the files and their columns.
        written: Dict from each argument that was an in-memory table, such as
            `"data"`, to the path of the temporary file with this table.
    """

    layer: dict[str, Any]
    written: dict[str, Any]

    @property
    def paths(self) -> list[Path]:
        """List of the paths of the temporary files."""
        return list(self.written.values())

    @property
    def names(self) -> list[tuple[Path, str]]:
        """List of pairs of a temporary file's path and its argument's name."""
        return [(path, argument) for argument, path in self.written.items()]

    def moved_layer(self, folder: Path) -> dict[str, Any]:
        """Returns the settings `layer` with the future paths of its files.

        The path of each temporary file is replaced by its future path in
        `tables/`. The caller must move the files there; this method does not.

        Args:
            folder: Path of the folder that contains `tables/`.
        """
        tables = folder.absolute() / left_files.TABLES
        moved = {
            _FILES[argument][0]: str(tables / path.name)
            for argument, path in self.written.items()
        }
        return {"data": self.layer["data"] | moved}

    def moved_to(self, folder: Path, config: "Config") -> "Config":
        """Returns a copy of `config` with the future paths of its files.

        The path of each temporary file is replaced by its future path in the
        run folder's `tables/`. The caller must move the files there; this
        method does not.

        Args:
            folder: Path of the run folder.
            config: `Config` that names the temporary files.
        """
        paths = self.moved_layer(folder)["data"]
        moved = {_FILES[a][0]: paths[_FILES[a][0]] for a in self.written}
        data = dataclasses.replace(config.data, **moved)
        return dataclasses.replace(config, data=data)


@contextlib.contextmanager
def as_files(
    tables: dict[str, Any], text: str | Sequence[str], label: str
) -> Iterator[TableFiles]:
    """Context manager that writes in-memory tables to temporary files.

    It yields a `TableFiles`. The files are removed at the end of the block.

    Args:
        tables: Dict from `"data"`, `"validation"` and `"test"` to a path, an
            in-memory table, or `None`.
        text: Name of the text column, or names of two text columns.
        label: Name of the label column.

    Raises:
        DataError: See `write_json_lines`.
    """
    text = (text,) if isinstance(text, str) else tuple(text)
    layer, written = {"text": text, "label": label}, {}
    with tempfile.TemporaryDirectory(prefix="tf_adapters_") as folder:
        for argument, table in tables.items():
            setting, name = _FILES[argument]
            if table is None:
                continue
            if not isinstance(table, str | os.PathLike):
                path = Path(folder, f"{name}.jsonl")
                write_json_lines(path, argument, table, text, label)
                written[argument] = table = path
            layer[setting] = str(table)
        yield TableFiles({"data": layer}, written)


def write_json_lines(
    path: Path, argument: str, data: Any, text: Sequence[str], label: str
) -> None:
    """Writes the texts and labels of a table as JSON lines.

    Args:
        path: Path of the file.
        argument: Name of the argument that holds the table, for messages.
        data: `pandas.DataFrame`, `datasets.Dataset`, list of dicts, or dict of
            columns.
        text: Names of one or two text columns.
        label: Name of the label column. If it is a `datasets.ClassLabel`, the
            names of the classes are written, not their ids.

    Raises:
        DataError: If `data` has another type, a column is missing, or rows
            lack a text or a label. Lists the first ten faults.
    """
    columns = text_columns.table_columns(data)
    if columns is None:
        raise DataError(
            f"`{argument}` must be a pandas.DataFrame, a datasets.Dataset, a "
            "list of dicts, a dict of columns, or the path of a .csv, .tsv or "
            f".jsonl file. Received: {shown(data)}"
        )
    for role, name in (*(("text", name) for name in text), ("label", label)):
        _check_column(argument, role, name, columns)
    _check_lengths(argument, {name: columns[name] for name in (*text, label)})
    names = _class_names(data, label)
    problems = []
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for place, values in enumerate(
            zip(*(columns[name] for name in (*text, label)), strict=True)
        ):
            *texts, target = map(text_rows.plain, values)
            if names and isinstance(target, int):
                target = names[target]
            problems += _problems(place, text, texts, label, target)
            row = dict(zip((*text, label), (*texts, target), strict=True))
            if not problems:
                file.write(json.dumps(row) + "\n")
    _raise(argument, problems)
    if not Path(path).stat().st_size:
        raise DataError(f"`{argument}` has no rows.")


def _check_column(
    argument: str, role: str, name: str, columns: dict[str, list[Any]]
) -> None:
    if name not in columns:
        raise DataError(
            f"`{argument}` has no column `{cut(name)}`. Its columns are "
            f"{cut(', '.join(f'`{c}`' for c in columns))}: name one as "
            f"`{role}=`.{did_you_mean(name, columns)}"
        )


def _check_lengths(argument: str, columns: dict[str, list[Any]]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        received = ", ".join(f"{n} in `{name}`" for name, n in lengths.items())
        raise DataError(
            f"The columns of `{argument}` must have one length. Received: "
            f"{received}"
        )


def _class_names(data: Any, label: str) -> list[str] | None:
    """Returns the class names of the label column, or `None`.

    Only a column of a `datasets.Dataset` may have class names.
    """
    datasets = sys.modules.get("datasets")
    if not datasets or not isinstance(data, datasets.Dataset):
        return None
    return getattr(data.features.get(label), "names", None)


def _problems(
    place: int, text: Sequence[str], texts: list[Any], label: str, target: Any
) -> Iterator[str]:
    """Yields a message for each invalid text or label of a row.

    Args:
        place: Index of the row.
        text: Names of the text columns.
        texts: Values of the text columns.
        label: Name of the label column.
        target: Value of the label column.
    """
    row = f"row {place}"
    for name, value in zip(text, texts, strict=True):
        if value is None or value == "":
            yield f"{row}: column `{name}` has no text"
        elif not isinstance(value, str):
            yield (
                f"{row}: column `{name}` must hold texts, received "
                f"{shown(value)} ({type(value).__name__})"
            )
    if target is None or target == "":
        yield f"{row}: column `{label}` has no label"
    elif not isinstance(target, _LABELS):
        yield (
            f"{row}: a label must be a text or a number, received "
            f"{shown(target)} ({type(target).__name__})"
        )


def _raise(argument: str, problems: list[str]) -> None:
    if problems:
        lines = [f"  {problem}" for problem in problems[:_MAX_REPORTED]]
        if len(problems) > len(lines):
            lines.append(f"  and {len(problems) - len(lines)} more")
        raise DataError(
            f"`{argument}` has {len(problems)} faults; the first row is row "
            "0:\n" + "\n".join(lines) + "\nCorrect these rows or leave them "
            "out: data = data.dropna(), for example."
        )
