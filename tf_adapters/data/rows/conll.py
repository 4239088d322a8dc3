"""Parses and writes CoNLL-U and CoNLL's columns, with a word on each line."""

from collections.abc import Iterable
from collections.abc import Iterator
import re
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown

_CONLLU_COLUMNS = 10
_FORM, _UPOS = 1, 3
# IDs of multiword tokens and of empty nodes.
_NO_WORD = re.compile(r"\d+[-.]\d+")


def parse_conllu(lines: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Parses CoNLL-U, https://universaldependencies.org/format.html.

    Only words have tags, so multiword tokens ("1-2") and empty nodes ("1.1")
    are skipped. Only the columns FORM and UPOS are read.

    Args:
        lines: Pairs of line number and text.

    Returns:
        Two lists of pairs: rows, each with the line number of a sentence's
        first word and a dict with `tokens` and `tags`; and problems, each with
        a line number and a text.
    """
    rows, problems, words = [], [], []
    for number, line in [*lines, (0, "")]:
        if not line.strip():
            rows += _sentence(words)
            words = []
        elif not line.startswith("#"):
            columns = line.split("\t")
            if len(columns) != _CONLLU_COLUMNS:
                what = f"expected 10 columns, received {len(columns)}"
                problems.append((number, what))
            elif columns[0].isdecimal():
                words.append((number, columns[_FORM], columns[_UPOS]))
            elif not _NO_WORD.fullmatch(columns[0]):
                problems.append((number, f"unknown ID {shown(columns[0])}"))
    return rows, problems


def parse_columns(lines: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Parses lines whose first column is a word and whose last is its tag.

    Lines can also have the word alone. Columns are separated by tabs, or by
    spaces if the line has no tab. An empty line ends a sentence. "-DOCSTART-"
    lines are skipped (Tjong Kim Sang and De Meulder 2003).

    Args:
        lines: Pairs of line number and text.

    Returns:
        Rows and problems, as from `parse_conllu`. Without tags, rows have
        `tokens` only.
    """
    rows, problems, words = [], [], []
    for number, line in [*lines, (0, "")]:
        # Other Unicode spaces do not separate columns: words can have them.
        columns = line.split("\t" if "\t" in line else " ")
        columns = [column.strip(" ") for column in columns]
        columns = [column for column in columns if column]
        if not columns:
            rows += _sentence(words)
            words = []
        elif columns[0] != "-DOCSTART-":
            tag = columns[-1] if len(columns) > 1 else None
            if words and (words[0][2] is None) != (tag is None):
                what = "expected a word and a tag in each line of a sentence"
                problems.append((number, what))
            words.append((number, columns[0], tag))
    return rows, problems


def _sentence(words: Any) -> list[Any]:
    """Returns a list with one row for a sentence, or with none if it is empty.

    `words` are triples of a line number, a word, and a tag or `None`. The row
    is a pair of the first line number and a dict with `tokens` and `tags`.
    """
    if not words:
        return []
    numbers, forms, tags = zip(*words, strict=True)
    row = {"tokens": list(forms)}
    if tags[0] is not None:
        row["tags"] = list(tags)
    return [(numbers[0], row)]


def conllu_lines(words: Any, tags: Any) -> Iterator[str]:
    """Yields the lines of a sentence in CoNLL-U, and an empty line.

    ID, FORM and UPOS are written; the other columns are empty ("_").
    """
    _check(words)
    for number, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
        blank = ["_"] * _CONLLU_COLUMNS
        blank[0], blank[_FORM], blank[_UPOS] = str(number), word, tag
        yield "\t".join(blank)
    yield ""


def column_lines(words: Any, tags: Any) -> Iterator[str]:
    """Yields a sentence's words and tags in two columns, and an empty line."""
    _check(words)
    for word, tag in zip(words, tags, strict=True):
        yield f"{word}\t{tag}"
    yield ""


def _check(words: Any) -> None:
    for word in words:
        if not word.strip(" ") or set(word) & set("\t\n\r"):
            raise UserError(
                f"The word {shown(word)} cannot be written in a column: it is "
                "empty or holds a tab or the end of a line. Give --output a "
                "name that ends in .jsonl."
            )
