"""Sentences in columns: CoNLL-U, and CoNLL's own, a word a line."""

import re

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown

_CONLLU_COLUMNS = 10
_FORM, _UPOS = 1, 3
# IDs of a token that spans words, and of an empty node.
_NO_WORD = re.compile(r"\d+[-.]\d+")


def parse_conllu(lines):
    """Parses CoNLL-U, https://universaldependencies.org/format.html.

    Tokens that span words ("1-2"), empty nodes ("1.1") and all columns but
    FORM and UPOS are left out: words are what has tags.

    Args:
        lines: Pairs of line number and text.

    Returns:
        Rows and problems, both pairs with a line number; a sentence has that
        of its first word.
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


def parse_columns(lines):
    """Parses columns: the word first and its tag last, or a word alone.

    Tabs part them, or blanks in a line without tabs; an empty line ends a
    sentence, and "-DOCSTART-" lines are left out (Tjong Kim Sang and De
    Meulder 2003).

    Args:
        lines: Pairs of line number and text.

    Returns:
        As `parse_conllu`.
    """
    rows, problems, words = [], [], []
    for number, line in [*lines, (0, "")]:
        # Not at other spaces: a word may hold one.
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


def _sentence(words):
    """Returns the row of some words as a list, none for no words."""
    if not words:
        return []
    numbers, forms, tags = zip(*words, strict=True)
    row = {"tokens": list(forms)}
    if tags[0] is not None:
        row["tags"] = list(tags)
    return [(numbers[0], row)]


def conllu_lines(words, tags):
    """Yields the lines of a sentence in CoNLL-U, an empty one last.

    They hold ID, FORM and UPOS; the other columns are empty ("_").
    """
    _check(words)
    for number, (word, tag) in enumerate(zip(words, tags, strict=True), 1):
        blank = ["_"] * _CONLLU_COLUMNS
        blank[0], blank[_FORM], blank[_UPOS] = str(number), word, tag
        yield "\t".join(blank)
    yield ""


def column_lines(words, tags):
    """Yields the lines of a sentence in two columns, an empty one last."""
    _check(words)
    for word, tag in zip(words, tags, strict=True):
        yield f"{word}\t{tag}"
    yield ""


def _check(words):
    for word in words:
        if not word.strip(" ") or set(word) & set("\t\n\r"):
            raise UserError(
                f"The word {shown(word)} cannot stand in a column: it is empty "
                "or holds a tab or the end of a line. Give --output a name "
                "that ends in .jsonl."
            )
