"""Writes a table in memory as JSON lines, and reports its invalid rows."""

from collections.abc import Iterator
from collections.abc import Sequence
import json
from pathlib import Path
from typing import Any

from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.text_files import check_unicode
from tf_adapters.text.rows import plain
from tf_adapters.text.table_reading import read_table

_MAX_REPORTED = 10
# Types that a label may have, so that JSON and CSV can store it.
_LABELS = str | int | float


def write_json_lines(
    path: Path,
    argument: str,
    data: Any,
    text: Sequence[str],
    label: str | None,
    labeled: bool = True,
) -> None:
    """Writes the texts and labels of a table as JSON lines.

    Args:
        path: Path of the file.
        argument: Name of the argument that holds the table, for messages.
        data: `pandas.DataFrame`, `datasets.Dataset`, list of dicts, or dict of
            columns.
        text: Names of the text columns.
        label: Name of the label column, or `None` to write no labels. If it is
            a `datasets.ClassLabel`, the names of the classes are written, not
            their ids.
        labeled: Whether each row must have a label. Defaults to `True`.

    Raises:
        DataError: If `data` has another type, a column is missing, or rows
            lack a text or a label. Lists the first ten faults.
    """
    columns = _columns(argument, data, text, label, labeled)
    problems = []
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for place, values in enumerate(zip(*columns.values(), strict=True)):
            row = dict(zip(columns, map(plain, values), strict=True))
            problems += [
                f"row {place}: {problem}"
                for problem in _problems(row, label, labeled)
            ]
            if not problems:
                file.write(json.dumps(row) + "\n")
    _raise(argument, problems)
    if not Path(path).stat().st_size:
        raise DataError(f"`{argument}` has no rows.")


def _columns(
    argument: str,
    data: Any,
    text: Sequence[str],
    label: str | None,
    labeled: bool,
) -> dict[str, list[Any]]:
    """Returns the columns to write; see `write_json_lines` for the arguments.

    The label column is left out if it is missing and `labeled` is `False`.
    """
    table = read_table(data)
    if table is None:
        raise DataError(
            f"`{argument}` must be a pandas.DataFrame, a datasets.Dataset, a "
            "list of dicts, a dict of columns, or the path of a .csv, .tsv or "
            f".jsonl file. Received: {shown(data)}"
        )
    names, column = table
    for name in text:
        _check_column(argument, "text", name, names)
    wanted = [*text]
    if label is not None and (labeled or label in names):
        _check_column(argument, "label", label, names)
        wanted.append(label)
    columns = {name: column(name) for name in wanted}
    _check_lengths(argument, columns)
    if label in columns and not labeled:
        columns[label] = _without_floats(columns[label])
    return columns


def _without_floats(values: list[Any]) -> list[Any]:
    """Converts floats back to whole numbers if pandas may have made them.

    If a column of whole numbers has missing values, pandas stores the numbers
    as floats.
    """
    values = [plain(value) for value in values]
    given = [value for value in values if value is not None]
    if len(given) == len(values) or not all(map(_is_whole_float, given)):
        return values
    return [None if value is None else int(value) for value in values]


def _is_whole_float(value: Any) -> bool:
    return isinstance(value, float) and value.is_integer()


def _check_column(
    argument: str, role: str, name: str, columns: list[str]
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


def _problems(
    row: dict[str, Any], label: str | None, labeled: bool
) -> Iterator[str]:
    """Yields a message for each invalid text or label of a row.

    Args:
        row: Dict from the name of each column to the row's value.
        label: Name of the label column, or `None`.
        labeled: Whether the row must have a label.
    """
    for name, value in row.items():
        what = "label" if name == label else "text"
        if value is None or value == "":
            if what == "text" or labeled:
                yield f"column `{name}` has no {what}"
        elif what == "label" and not isinstance(value, _LABELS):
            yield (
                f"a label must be a text or a number, received {shown(value)} "
                f"({type(value).__name__})"
            )
        elif what == "text" and not isinstance(value, str):
            yield (
                f"column `{name}` must hold texts, received {shown(value)} "
                f"({type(value).__name__})"
            )
        elif isinstance(value, str):
            yield from _unicode_problem(name, value)


def _unicode_problem(name: str, value: str) -> Iterator[str]:
    try:
        check_unicode(value)
    except UserError as error:
        yield f"column `{name}` is {error}"


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
