"""Shows an explanation as lines of text."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.explain import shown

if TYPE_CHECKING:
    from tf_adapters.explain.explanation import Explanation

_BAR = 10
# Number of words that are listed for each of several answers.
_MOST_WORDS = 3
# Backgrounds in the palette of 256 colors, from weak to strong: blue for words
# that speak for the answer, orange for words that speak against it.
_FOR, _AGAINST = (153, 117, 75, 39), (223, 216, 209, 202)


def to_text(explanation: Explanation, color: bool) -> str:
    """Returns an explanation as text; see `Explanation.to_text`."""
    parts = [_title(explanation)]
    if color and not explanation.has_several:
        parts.append(_colored(explanation))
    if explanation.has_several:
        parts += [_answers(explanation), *_moved(explanation)]
    else:
        parts.append(_words(explanation))
    parts.append(_variants(explanation))
    if explanation.members:
        parts.append(_members(explanation))
    return "\n\n".join(parts)


def _title(explanation: Explanation) -> str:
    complete = explanation.variants[0]
    text = shown.answer_text(complete.answer)
    if explanation.has_several:
        return text
    name = f"{explanation.answers[0]}: {explanation.score_name}"
    return f"{text}\n{name} {shown.signed(complete.scores[0])}"


def _colored(explanation: Explanation) -> str:
    """Returns the words, with backgrounds that show what leaving out does."""
    values = shown.shares(explanation.left_out[0])
    words = zip(explanation.words, values, strict=True)
    return " ".join(_in_color(word, float(value)) for word, value in words)


def _in_color(word: str, value: float) -> str:
    colors = _FOR if value > 0 else _AGAINST
    strength = int(abs(value) * len(colors))
    if not strength:
        return word
    return f"\x1b[30;48;5;{colors[strength - 1]}m{word}\x1b[0m"


def _words(explanation: Explanation) -> str:
    """Returns a table of the words, for an explanation of one answer."""
    header = ["", "left out", "", "gradient", "", *_block_names(explanation)]
    columns = [
        column
        for values in (explanation.left_out[0], explanation.gradient[0])
        for column in (map(shown.signed, values), _bars(values))
    ]
    columns += [map(shown.percent, block) for block in explanation.movements]
    rows = zip(explanation.words, *columns, strict=True)
    return _table(header, rows, left=(0, 2, 4)) + _legend(explanation)


def _legend(explanation: Explanation) -> str:
    lines = [
        f"left out: the answer's {explanation.score_name} minus its "
        f"{explanation.score_name} without the word",
        "gradient: gradient times input; bars are relative to the longest",
    ]
    if len(explanation.movements):
        lines.append("b1, b2, ...: how far the block's adapter moves the word")
    return "\n" + "\n".join(lines)


def _bars(values: np.ndarray) -> list[str]:
    """Returns a bar for each value: full blocks if positive, else shaded."""
    return [
        ("█" if share > 0 else "░") * round(abs(share) * _BAR)
        for share in shown.shares(values)
    ]


def _block_names(explanation: Explanation) -> list[str]:
    return [f"b{i + 1}" for i in range(len(explanation.movements))]


def _answers(explanation: Explanation) -> str:
    """Returns a table of several answers, with the words that decide each."""
    header = ["answer", explanation.score_name, "words that decide (left out)"]
    rows = [
        [
            name,
            shown.signed(explanation.variants[0].scores[i]),
            _strongest(explanation.words, explanation.left_out[i]),
        ]
        for i, name in enumerate(explanation.answers)
    ]
    return _table(header, rows, left=(0, 2))


def _strongest(words: Sequence[str], values: np.ndarray) -> str:
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    return ", ".join(
        f"{words[i]} {shown.signed(float(values[i]))}"
        for i in order[:_MOST_WORDS]
        if not np.isnan(values[i])
    )


def _moved(explanation: Explanation) -> Iterator[str]:
    """Yields a table of how far blocks' adapters move words, if any do."""
    if len(explanation.movements):
        header = ["moved by block", *_block_names(explanation)]
        columns = [map(shown.percent, b) for b in explanation.movements]
        rows = zip(explanation.words, *columns, strict=True)
        yield _table(header, rows, left=(0,))


def _variants(explanation: Explanation) -> str:
    header = ["adapters", "answer", explanation.name_of_mean]
    rows = [
        [
            variant.name,
            shown.answer_text(variant.answer),
            shown.signed(variant.scores.mean()),
        ]
        for variant in explanation.variants
    ]
    return _table(header, rows, left=(0, 1))


def _members(explanation: Explanation) -> str:
    columns = explanation.mean_member_weights.T
    rows = zip(
        explanation.words,
        *(map(shown.percent, column) for column in columns),
        strict=True,
    )
    header = ["used members", *explanation.members]
    return _table(header, rows, left=(0,))


def _table(
    header: Sequence[str], rows: Iterable[Sequence[str]], left: Sequence[int]
) -> str:
    """Returns an aligned table; the columns `left` are aligned to the left."""
    lines = [header, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i in left else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
