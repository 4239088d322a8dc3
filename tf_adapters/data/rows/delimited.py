"""Reads CSV and TSV: their encoding, their delimiter, and their columns.

In many countries spreadsheets write semicolons instead of commas, and Latin-1
instead of UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
import csv
import functools
import itertools
import logging
import sys
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import raw_lines
from tf_adapters.data.rows.table import Table

if TYPE_CHECKING:
    from pathlib import Path


_LOGGER = logging.getLogger(__name__)
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
# Spreadsheets mean this superset when they say Latin-1.
_LATIN_1 = "cp1252"
_DELIMITERS = ",;\t"
# Lines that the delimiter is detected from.
_FIRST_LINES = 50


def find_dialect(path: Path) -> tuple[str, str]:
    """Returns the encoding and the delimiter of a CSV file.

    Logs a warning if the encoding is not UTF-8.

    Args:
        path: Path of the file.

    Raises:
        DataError: If the file cannot be read, or is in UTF-16.
    """
    lines = raw_lines.open_lines(path)
    first = list(itertools.islice(lines, _FIRST_LINES))
    encoding = _encoding(first, lines)
    if first and first[0].startswith(_UTF_16):
        raise DataError(f"{cut(path)} is in UTF-16. Save it as CSV in UTF-8.")
    if encoding != "utf-8":
        _warn_of_latin_1(path)
    texts = [line.decode(encoding, "replace").rstrip("\r\n") for line in first]
    return encoding, _delimiter(texts)


@functools.cache  # Warns once, though a file is opened several times.
def _warn_of_latin_1(path: Path) -> None:
    _LOGGER.warning(
        "%s is not in UTF-8 and is read as Latin-1 (Windows-1252). Save it as "
        "UTF-8 if its letters are wrong.",
        path,
    )


def _encoding(first: Any, rest: Any) -> str:
    """Detects the encoding of a CSV file: Latin-1 or UTF-8.

    It is Latin-1 if all lines with non-ASCII bytes are valid Latin-1 and none
    is valid UTF-8. A file with lines in both encodings is read as UTF-8, and
    its Latin-1 lines are reported as errors.
    """
    beyond = False
    for line in itertools.chain(first, rest):
        if line.isascii():
            continue
        if _can_decode(line, "utf-8") or not _can_decode(line, _LATIN_1):
            return "utf-8"
        beyond = True
    return _LATIN_1 if beyond else "utf-8"


def _can_decode(line: Any, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(lines: list[str]) -> str:
    """Detects the delimiter of a CSV file from its first lines.

    It is the one that divides most rows into as many columns as the header, or
    the comma, if several do.
    """
    return max(_DELIMITERS, key=lambda mark: _num_regular_rows(lines, mark))


def _num_regular_rows(lines: list[str], delimiter: str) -> int:
    """Counts the rows with as many columns as the header, the header included.

    Returns 0 if the header is a single column, or not CSV.
    """
    problems: list[tuple[int, str]] = []
    records = parse_csv(enumerate(lines), problems, delimiter)
    header = next((record for _, record in records if record), [])
    if problems or len(header) < 2:
        return 0
    return 1 + sum(len(record) == len(header) for _, record in records)


def parse_csv(
    lines: Iterable[Any], problems: list[tuple[int, str]], delimiter: str = ","
) -> Iterator[tuple[Any, Any]]:
    """Parses CSV and yields pairs of a line number and a list of fields.

    `lines` are pairs of line number and text. A quoted field can span lines.
    Malformed records are skipped and added to `problems`.
    """
    numbers = []

    def texts() -> Iterator[Any]:
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
            what = str(error)
            if "universal-newline" in what:
                what = (
                    "a carriage return outside of quotes; save the file with "
                    "the line ends of Unix or Windows"
                )
            problems.append((numbers[0], f"not CSV: {what}"))
        else:
            yield numbers[0], record


def _next_record(reader: Any) -> Any:
    # The module's default limit, 131,072 characters, is too low for some texts.
    # On Windows, it is an integer of 32 bits.
    limit = csv.field_size_limit(min(sys.maxsize, 2**31 - 1))
    try:
        return next(reader)
    finally:
        csv.field_size_limit(limit)


def parse_tsv(lines: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Parses TSV and yields pairs of a line number and a list of fields.

    `lines` are pairs of line number and text. Quotes are ordinary characters,
    as in GLUE.
    """
    return (
        (number, line.split("\t") if line else []) for number, line in lines
    )


def with_header(
    records: Any,
    problems: Any,
    columns: Any = (),
) -> Table:
    records = iter(records)
    if not columns:
        columns = next((record for _, record in records if record), [])
        if problems:  # The header is malformed, and this was the next line.
            columns = []
    return Table("", _fields(records, columns, problems), tuple(columns))


def _fields(
    records: Any, columns: Any, problems: list[tuple[int, str]]
) -> Iterator[tuple[int, dict[str, str]]]:
    for number, record in records:
        if not record:
            if len(columns) != 1:
                continue
            record = [""]  # With one column, an empty line is an empty text.
        if len(record) == len(columns):
            yield number, dict(zip(columns, record, strict=True))
        else:
            what = f"expected {len(columns)} columns, received {len(record)}"
            problems.append((number, what))
