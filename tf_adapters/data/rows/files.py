"""Reads local files into rows with line numbers, and collects all problems.

Files are in UTF-8. Lines end at newlines only, because texts can contain other
characters that Unicode and `str.splitlines` treat as line ends. Tables with a
row on each line are read lazily, so that they need not fit into memory.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
import itertools
import logging
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import DataError
from tf_adapters.common.text_files import parse_json
from tf_adapters.data.rows import conll
from tf_adapters.data.rows import delimited
from tf_adapters.data.rows import raw_lines
from tf_adapters.data.rows import squad
from tf_adapters.data.rows.table import Table

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


_LOGGER = logging.getLogger(__name__)
_MARK = b"\xef\xbb\xbf"  # UTF-8's byte order mark, at the start of a file.


def read_file(path: Path, text_field: str | None = None) -> Table:
    """Reads a whole file; see `open_file` for arguments and formats.

    Raises:
        DataError: If the file is missing, has another format, or has no rows.
    """
    table = open_file(path, text_field)
    table.rows = list(table.rows)
    table.raise_empty(table.rows)
    return table


def open_file(path: Any, text_field: str | None = None) -> Table:
    """Opens a data file. The ending of its name determines the format.

    - `.jsonl`: a JSON object on each line.
    - `.csv`: standard quoting, with a header line. Semicolons and Latin-1 are
      supported; see `delimited`.
    - `.tsv`: no quoting, with a header line.
    - `.conllu`, `.conll`: a word on each line. The fields are `tokens` and
      `tags`.
    - `.json`: SQuAD's format.
    - `.txt`: a text on each line.

    Args:
        path: Path of the file.
        text_field: Name of the field for the lines of a `.txt` file. `None`
            (default) rejects `.txt` files.

    Returns:
        A `Table`. Its `problems` are complete after all rows have been read.

    Raises:
        DataError: If the file is missing or has another format.
    """
    path = Path(path)
    problems = []
    ending = path.suffix.lower()
    encoding, delimiter = "utf-8", ","
    if ending == ".csv":
        encoding, delimiter = delimited.find_dialect(path)
    lines = _lines(path, problems, encoding)
    parsers = {
        ".jsonl": lambda: Table("", _parse_jsonl(lines, problems)),
        ".csv": lambda: delimited.with_header(
            delimited.parse_csv(lines, problems, delimiter), problems
        ),
        ".tsv": lambda: delimited.with_header(
            delimited.parse_tsv(lines), problems
        ),
        ".conllu": lambda: _parse_words(conll.parse_conllu, lines, problems),
        ".conll": lambda: _parse_words(conll.parse_columns, lines, problems),
        ".json": lambda: _parse_squad(lines, path),
    }
    if text_field:
        texts = ((number, {text_field: line}) for number, line in lines)
        parsers[".txt"] = lambda: Table("", texts)
    if ending == ".txt" and not text_field:
        raise DataError(
            f"{path}: a .txt file has one text per line and no labels, and "
            "more is needed here. Give a file whose name ends in one of: "
            f"{', '.join(parsers)}."
        )
    if ending not in parsers:
        raise DataError(
            f"Cannot tell the format of {path}. Expected a name that ends in "
            f"one of: {', '.join(parsers)}."
        )
    table = parsers[ending]()
    table.origin = str(path)
    table.problems = problems
    return table


def open_stream(
    file: Any, origin: str, text_field: str | None = None, alias: str = ""
) -> Table:
    """Opens a stream, such as a pipe, of JSON lines or of lines of text.

    Args:
        file: Binary file.
        origin: Name of the stream in error messages.
        text_field: Name of the field for lines of text. If the first line is a
            JSON object with this field, lines are JSON instead; without it, a
            warning is logged. `None` (default) for JSON lines.
        alias: Another name of this field in JSON objects. Defaults to none.

    Returns:
        A `Table`. Its `problems` are complete after all rows have been read.
    """
    problems = []
    lines = raw_lines.limited_lines(file, origin)
    lines = _without_empty_end(_decoded(lines, problems, "utf-8"))
    first = next(lines, None)
    lines = iter(()) if first is None else itertools.chain([first], lines)
    row = _first_object(first)
    if text_field and {text_field, alias}.isdisjoint(row):
        if row:
            _LOGGER.warning(
                "%s begins with a JSON object without `%s`, so each line is "
                "read as a text. Name the field with the text `%s`.",
                *(origin, text_field, text_field),
            )
        rows = ((number, {text_field: line}) for number, line in lines)
    else:
        rows = _parse_jsonl(lines, problems)
    return Table(origin, rows, problems=problems)


def _first_object(numbered_line: Any) -> dict[str, Any]:
    """Returns the JSON object in a line, or an empty dict if it has none."""
    try:
        row = parse_json(numbered_line[1])
    except (TypeError, ValueError):  # No line, a number, or not JSON.
        return {}
    return row if isinstance(row, dict) else {}


def read_glue_file(path: Path, task: Task) -> Table:
    """Reads a file of the official GLUE download.

    Args:
        path: TSV file, for example `CoLA/train.tsv`.
        task: A `Task` with a `glue` layout.

    Returns:
        A `Table` with the task's own field names. The label's field is missing
        if the file has no labels.
    """
    layout: Any = task.glue
    headerless = layout.headerless_columns
    if Path(path).stem.startswith("test"):
        headerless = ()
    undecodable, problems = [], []
    lines = _lines(Path(path), undecodable)
    table = delimited.with_header(
        delimited.parse_tsv(lines), problems, headerless
    )
    table.rows, table.origin = list(table.rows), str(path)
    table.problems = problems
    if layout.skip_broken_lines:
        _warn_of_skipped(table)
    table.problems += undecodable
    table.raise_empty(table.rows)
    names = dict(zip(layout.columns, task.text_fields, strict=True))
    names[layout.label_column] = task.label_field
    table.columns = tuple(
        names.get(c, f"unused {c}") for c in table.columns or ()
    )
    table.rows = [
        (line, {names[k]: v for k, v in row.items() if k in names})
        for line, row in table.rows
    ]
    return table


def _lines(
    path: Path, problems: list[tuple[int, str]], encoding: str = "utf-8"
) -> Iterator[Any]:
    """Returns an iterator over the lines of a file, as (number, text) pairs.

    Lines that cannot be decoded are skipped and added to `problems`. Empty
    lines at the end are skipped.
    """
    lines = raw_lines.open_lines(path)
    return _without_empty_end(_decoded(lines, problems, encoding))


def _decoded(
    lines: Iterable[bytes], problems: list[tuple[int, str]], encoding: str
) -> Iterator[tuple[int, Any]]:
    for number, raw in enumerate(lines, start=1):
        raw = raw.removeprefix(_MARK) if number == 1 else raw
        try:
            line = raw.removesuffix(b"\n").decode(encoding)
        except UnicodeDecodeError as error:
            problems.append((number, f"not UTF-8 at byte {error.start + 1}"))
        else:
            yield number, line.removesuffix("\r")


def _without_empty_end(lines: Iterable[Any]) -> Iterator[Any]:
    empty = []
    for number, line in lines:
        if line:
            yield from empty
            empty.clear()
            yield number, line
        else:
            empty.append((number, line))


def _parse_squad(lines: Iterable[Any], path: Path) -> Table:
    try:
        rows = squad.parse_squad("\n".join(line for _, line in lines))
    except ValueError as error:
        raise DataError(f"{path} is {error}.") from error
    return Table("", rows, unit="question")


def _parse_words(
    parse: Callable[..., Any],
    lines: Iterable[Any],
    problems: list[tuple[int, str]],
) -> Table:
    rows, found = parse(lines)
    problems += found
    return Table("", rows)


def _parse_jsonl(
    lines: Iterable[Any], problems: list[tuple[int, str]]
) -> Iterator[tuple[Any, dict[Any, Any]]]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            problems.append((number, str(error)))
            continue
        if isinstance(row, dict):
            yield number, row
        else:
            what = f"expected an object {{...}}, received {_excerpt(line)}"
            problems.append((number, what))


def _warn_of_skipped(table: Table) -> None:
    if table.problems:
        _LOGGER.warning(
            "Left out %d broken lines of %s, first line %d",
            len(table.problems),
            table.origin,
            table.problems[0][0],
        )
        table.problems = []


def _excerpt(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:60]}..."
