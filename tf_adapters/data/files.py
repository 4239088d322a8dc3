"""Readers of local files: every row with its line number, every problem kept.

Files are UTF-8 and a line ends at a newline and nowhere else: texts hold other
characters that Unicode, and `str.splitlines`, count as ends of lines.
"""

import csv
import dataclasses
import logging
from pathlib import Path
import sys

from tf_adapters.data import conll
from tf_adapters.data import squad
from tf_adapters.plain_files import parse_json

_LOGGER = logging.getLogger(__name__)
_MAX_REPORTED = 10


class DataError(ValueError):
    """A data set that is missing, unreachable or malformed."""


@dataclasses.dataclass
class Table:
    """Rows as they stand in a file, before a task gives them types.

    Attributes:
        origin: What an error message calls the file.
        rows: Pairs of line number and dict of fields.
        columns: Names in the header line; None where there is none.
        problems: Pairs of line number and what is wrong there.
        unit: What the numbers count, if not lines.
    """

    origin: str
    rows: list[tuple[int, dict]]
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

    def raise_empty(self):
        """Raises a `DataError` if there is nothing, not even a problem."""
        if not self.rows and not self.problems:
            raise DataError(
                f"{self.origin} holds no rows: it is empty, or has a header "
                "line and nothing else. Expected a row for each example."
            )


def read_file(path, text_field=None):
    """Reads a file in the format that its name says.

    Args:
        path: A file that ends in `.jsonl` (an object a line), `.csv` (quoted
            as usual, with a header line), `.tsv` (no quoting, with a header
            line), `.conllu` or `.conll` (a word a line; the fields are
            `tokens` and `tags`), `.json` (SQuAD's own format) or `.txt` (a
            text a line).
        text_field: Name that a `.txt` file's lines get as a field; None where
            the format cannot be read.

    Returns:
        A `Table`, with the problems found so far.

    Raises:
        DataError: If the file is missing, empty or of another format.
    """
    path = Path(path)
    lines, problems = _read_lines(path)
    if path.suffix == ".jsonl":
        table = _parse_jsonl(lines)
    elif path.suffix == ".csv":
        table = _parse_csv(lines)
    elif path.suffix == ".tsv":
        table = _parse_tsv(lines)
    elif path.suffix == ".conllu":
        table = _parse_words(conll.parse_conllu, lines)
    elif path.suffix == ".conll":
        table = _parse_words(conll.parse_columns, lines)
    elif path.suffix == ".json":
        table = _parse_squad(lines, path)
    elif path.suffix == ".txt" and text_field:
        table = Table("", [(n, {text_field: line}) for n, line in lines])
    else:
        formats = ".jsonl, .csv, .tsv, .conllu, .conll, .json"
        formats += ", .txt" if text_field else ""
        raise DataError(
            f"Cannot tell the format of {path}. Expected a name that ends in "
            f"one of: {formats}."
        )
    table.origin = str(path)
    table.problems += problems
    table.raise_empty()
    return table


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
    lines, problems = _read_lines(Path(path))
    table = _parse_tsv(lines, headerless)
    table.origin = str(path)
    if layout.skip_broken_lines:
        _warn_of_skipped(table)
    table.problems += problems
    table.raise_empty()
    names = dict(zip(layout.columns, task.text_fields, strict=True))
    names[layout.label_column] = task.label_field
    table.columns = tuple(names.get(c, f"unused {c}") for c in table.columns)
    table.rows = [
        (line, {names[k]: v for k, v in row.items() if k in names})
        for line, row in table.rows
    ]
    return table


def _read_lines(path):
    """Returns pairs of line number and text, and the lines not in UTF-8."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {path}: {error.strerror}.") from error
    lines, problems = [], []
    content = content.removeprefix(b"\xef\xbb\xbf")
    for number, raw in enumerate(content.split(b"\n"), start=1):
        try:
            lines.append((number, raw.decode("utf-8").removesuffix("\r")))
        except UnicodeDecodeError as error:
            problems.append((number, f"not UTF-8 at byte {error.start + 1}"))
    while lines and not lines[-1][1]:
        lines.pop()
    return lines, problems


def _parse_squad(lines, path):
    try:
        rows = squad.parse_squad("\n".join(line for _, line in lines))
    except ValueError as error:
        raise DataError(f"{path} is {error}.") from error
    return Table("", rows, unit="question")


def _parse_words(parse, lines):
    rows, problems = parse(lines)
    return Table("", rows, problems=problems)


def _parse_jsonl(lines):
    table = Table("", [])
    for number, line in lines:
        if not line.strip():
            continue
        try:
            row = parse_json(line)
        except ValueError as error:
            table.problems.append((number, str(error)))
            continue
        if isinstance(row, dict):
            table.rows.append((number, row))
        else:
            what = f"expected an object {{...}}, received {_excerpt(line)}"
            table.problems.append((number, what))
    return table


def _parse_csv(lines):
    """Parses with the csv module, which lets quoted fields span lines."""
    # Its own limit is 131,072 characters, less than some texts have.
    limit = csv.field_size_limit(sys.maxsize)
    try:
        return _parse_quoted(lines)
    finally:
        csv.field_size_limit(limit)


def _parse_quoted(lines):
    reader = csv.reader((f"{line}\n" for _, line in lines), strict=True)
    problems, records, start = [], [], 0
    while True:
        try:
            record = next(reader)
        except StopIteration:
            break
        except csv.Error as error:
            problems.append((lines[start][0], f"not CSV: {error}"))
        else:
            records.append((lines[start][0], record))
        start = min(reader.line_num, len(lines) - 1)
    table = _with_header(records)
    table.problems += problems
    return table


def _parse_tsv(lines, columns=()):
    """Splits at tabs: quotes are ordinary characters, as in GLUE's files."""
    records = [(number, line.split("\t")) for number, line in lines if line]
    return _with_header(records, columns)


def _with_header(records, columns=()):
    records = [(number, record) for number, record in records if record]
    if not columns:
        (_, columns), *records = records or [(1, [])]
    table = Table("", [], tuple(columns))
    for number, record in records:
        if len(record) == len(columns):
            table.rows.append((number, dict(zip(columns, record, strict=True))))
        else:
            what = f"expected {len(columns)} columns, received {len(record)}"
            table.problems.append((number, what))
    return table


def _warn_of_skipped(table):
    if table.problems:
        _LOGGER.warning(
            "Left out %d broken lines of %s, first line %d",
            len(table.problems),
            table.origin,
            table.problems[0][0],
        )
        table.problems = []


def _excerpt(text, length=60):
    return text if len(text) <= length else f"{text[:length]}..."
