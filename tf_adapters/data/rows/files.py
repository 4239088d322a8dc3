"""Readers of local files: every row with its line number, every problem kept.

Files are UTF-8 and a line ends at a newline and nowhere else: texts hold other
characters that Unicode, and `str.splitlines`, count as ends of lines. Tables of
a row a line are read as they are asked for, so that memory need not hold them.
"""

from collections.abc import Iterable
import csv
import dataclasses
import itertools
import logging
from pathlib import Path
import sys

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.common.text_files import parse_json
from tf_adapters.data.rows import conll
from tf_adapters.data.rows import csv_dialect
from tf_adapters.data.rows import squad

_LOGGER = logging.getLogger(__name__)
_MAX_REPORTED = 10
_MARK = b"\xef\xbb\xbf"  # Of UTF-8, at the beginning of a file.


@dataclasses.dataclass
class Table:
    """Rows as they stand in a file, before a task gives them types.

    Attributes:
        origin: What an error message calls the file.
        rows: Pairs of line number and dict of fields: a list, or from
            `open_file` an iterator, which notes problems as it comes to them.
        columns: Names in the header line; None where there is none.
        problems: Pairs of line number and what is wrong there.
        unit: What the numbers count, if not lines.
    """

    origin: str
    rows: Iterable[tuple[int, dict]]
    columns: tuple[str, ...] | None = None
    problems: list[tuple[int, str]] = dataclasses.field(default_factory=list)
    unit: str = "line"

    def raise_problems(self):
        """Raises one `DataError` that lists the problems, if there are any."""
        if not self.problems:
            return
        shown = sorted(self.problems)[:_MAX_REPORTED]
        lines = [f"  {self.unit} {line}: {what}" for line, what in shown]
        if len(self.problems) > len(shown):
            lines.append(f"  and {len(self.problems) - len(shown)} more")
        raise DataError(
            f"{len(self.problems)} malformed rows in {self.origin}:\n"
            + "\n".join(lines)
            + "\nCorrect or remove them and run again."
        )

    def raise_empty(self, rows):
        """Raises a `DataError` if no rows came, and not even a problem."""
        if not rows and not self.problems:
            raise DataError(
                f"{self.origin} holds no rows: it is empty, or has a header "
                "line and nothing else. Expected a row for each example."
            )


def read_file(path, text_field=None):
    """Reads a file as `open_file` does, whole.

    Raises:
        DataError: As `open_file`, and if there are no rows.
    """
    table = open_file(path, text_field)
    table.rows = list(table.rows)
    table.raise_empty(table.rows)
    return table


def open_file(path, text_field=None):
    """Opens a file in the format that its name says.

    Args:
        path: A file that ends in `.jsonl` (an object a line), `.csv` (quoted
            as usual, with a header line; perhaps with semicolons or in
            Latin-1, see `csv_dialect`), `.tsv` (no quoting, with a header
            line), `.conllu` or `.conll` (a word a line; the fields are
            `tokens` and `tags`), `.json` (SQuAD's own format) or `.txt` (a
            text a line).
        text_field: Name that a `.txt` file's lines get as a field; None where
            the format cannot be read.

    Returns:
        A `Table`; its problems are complete when its rows have been read.

    Raises:
        DataError: If the file is missing or of another format.
    """
    path = Path(path)
    problems = []
    ending = path.suffix.lower()
    encoding, delimiter = "utf-8", ","
    if ending == ".csv":
        encoding, delimiter = csv_dialect.find_dialect(path)
    lines = _lines(path, problems, encoding)
    parsers = {
        ".jsonl": lambda: Table("", _parse_jsonl(lines, problems)),
        ".csv": lambda: _with_header(
            _parse_csv(lines, problems, delimiter), problems
        ),
        ".tsv": lambda: _with_header(_parse_tsv(lines), problems),
        ".conllu": lambda: _parse_words(conll.parse_conllu, lines, problems),
        ".conll": lambda: _parse_words(conll.parse_columns, lines, problems),
        ".json": lambda: _parse_squad(lines, path),
    }
    if text_field:
        texts = ((number, {text_field: line}) for number, line in lines)
        parsers[".txt"] = lambda: Table("", texts)
    if ending not in parsers:
        raise DataError(
            f"Cannot tell the format of {path}. Expected a name that ends in "
            f"one of: {', '.join(parsers)}."
        )
    table = parsers[ending]()
    table.origin = str(path)
    table.problems = problems
    return table


def open_stream(file, origin, text_field=None):
    """Opens what a pipe gives: JSON lines, or a text a line.

    Args:
        file: Binary file.
        origin: What an error message calls it.
        text_field: Name that lines get as a field, unless the first one is an
            object with that field; None for JSON lines.

    Returns:
        A `Table`; its problems are complete when its rows have been read.
    """
    problems = []
    lines = _without_empty_end(_decoded(file, problems, "utf-8"))
    first = next(lines, None)
    lines = iter(()) if first is None else itertools.chain([first], lines)
    is_text = text_field and not _is_object_with(text_field, first)
    if is_text:
        rows = ((number, {text_field: line}) for number, line in lines)
    else:
        rows = _parse_jsonl(lines, problems)
    return Table(origin, rows, problems=problems)


def _is_object_with(field, numbered_line):
    try:
        return field in parse_json(numbered_line[1])
    except (TypeError, ValueError):  # No line, a number, no JSON.
        return False


def read_glue_file(path, task):
    """Reads a file of the official GLUE download.

    Args:
        path: TSV file, for example `CoLA/train.tsv`.
        task: A `Task` with a `glue` layout.

    Returns:
        A `Table` with the task's own field names; without the label's field
        where the file has no label.
    """
    layout = task.glue
    headerless = layout.headerless_columns
    if Path(path).stem.startswith("test"):
        headerless = ()
    undecodable, problems = [], []
    lines = _lines(Path(path), undecodable)
    table = _with_header(_parse_tsv(lines), problems, headerless)
    table.rows, table.origin = list(table.rows), str(path)
    table.problems = problems
    if layout.skip_broken_lines:
        _warn_of_skipped(table)
    table.problems += undecodable
    table.raise_empty(table.rows)
    names = dict(zip(layout.columns, task.text_fields, strict=True))
    names[layout.label_column] = task.label_field
    table.columns = tuple(names.get(c, f"unused {c}") for c in table.columns)
    table.rows = [
        (line, {names[k]: v for k, v in row.items() if k in names})
        for line, row in table.rows
    ]
    return table


def _lines(path, problems, encoding="utf-8"):
    """Returns an iterator of line numbers and texts.

    What is not in UTF-8 is left out and goes to `problems`, and empty lines at
    the end are left out.
    """
    try:
        file = path.open("rb")
        file.peek()
    except OSError as error:
        raise DataError(
            f"Cannot read {cut(path)}: {error.strerror}."
        ) from error
    return _without_empty_end(_decoded(file, problems, encoding))


def _decoded(file, problems, encoding):
    with file:
        for number, raw in enumerate(file, start=1):
            raw = raw.removeprefix(_MARK) if number == 1 else raw
            try:
                line = raw.removesuffix(b"\n").decode(encoding)
            except UnicodeDecodeError as error:
                problems.append(
                    (number, f"not UTF-8 at byte {error.start + 1}")
                )
            else:
                yield number, line.removesuffix("\r")


def _without_empty_end(lines):
    empty = []
    for number, line in lines:
        if line:
            yield from empty
            empty.clear()
            yield number, line
        else:
            empty.append((number, line))


def _parse_squad(lines, path):
    try:
        rows = squad.parse_squad("\n".join(line for _, line in lines))
    except ValueError as error:
        raise DataError(f"{path} is {error}.") from error
    return Table("", rows, unit="question")


def _parse_words(parse, lines, problems):
    rows, found = parse(lines)
    problems += found
    return Table("", rows)


def _parse_jsonl(lines, problems):
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


def _parse_csv(lines, problems, delimiter=","):
    """Yields records of the csv module, which lets quoted fields span lines."""
    numbers = []

    def texts():
        for number, line in lines:
            numbers.append(number)
            yield f"{line}\n"

    reader = csv.reader(texts(), strict=True, delimiter=delimiter)
    while True:
        numbers.clear()
        try:
            record = _next_record(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problems.append((numbers[0], f"not CSV: {error}"))
        else:
            yield numbers[0], record


def _next_record(reader):
    # The module's own limit is 131,072 characters, less than some texts have.
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return next(reader)
    finally:
        csv.field_size_limit(limit)


def _parse_tsv(lines):
    """Splits at tabs: quotes are ordinary characters, as in GLUE's files."""
    return (
        (number, line.split("\t") if line else []) for number, line in lines
    )


def _with_header(records, problems, columns=()):
    records = iter(records)
    if not columns:
        columns = next((record for _, record in records if record), [])
    return Table("", _fields(records, columns, problems), tuple(columns))


def _fields(records, columns, problems):
    for number, record in records:
        if not record:
            if len(columns) != 1:
                continue
            record = [""]  # In one column an empty line is an empty text.
        if len(record) == len(columns):
            yield number, dict(zip(columns, record, strict=True))
        else:
            what = f"expected {len(columns)} columns, received {len(record)}"
            problems.append((number, what))


def _warn_of_skipped(table):
    if table.problems:
        _LOGGER.warning(
            "Left out %d broken lines of %s, first line %d",
            len(table.problems),
            table.origin,
            table.problems[0][0],
        )
        table.problems = []


def _excerpt(text):
    return text if len(text) <= 60 else f"{text[:60]}..."
