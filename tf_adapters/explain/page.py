"""Shows an explanation as an HTML page in one file, without scripts."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.explain import shown
from tf_adapters.report.html_page import add
from tf_adapters.report.html_page import as_html
from tf_adapters.report.html_page import start_page

if TYPE_CHECKING:
    from tf_adapters.explain.explanation import Explanation

_STYLE = """
.words span { padding: .1rem .25rem; border-radius: .2rem; line-height: 2; }
.heat td { text-align: right; padding: .3rem .5rem; }
.heat th { padding-right: .7rem; font-weight: normal; }
.heat thead th { text-align: right; }
"""
# Red, green and blue of what speaks for the answer, and against it: the first
# two colors of Okabe and Ito's palette.
_FOR, _AGAINST = "0,114,178", "213,94,0"
_STRONGEST = 0.6
_NOTES = {
    "left_out": "The answer's {score} minus its {score} without the word. Blue "
    "words speak for the answer, orange words against it.",
    "gradient": "The gradient of the answer's {score} times the vectors that "
    "the first block reads.",
    "movements": "How far a block's adapter moves the word's vectors, relative "
    "to their length.",
    "members": "Attention weights of the fusion's members, averaged over its "
    "blocks.",
}


def to_html(explanation: Explanation) -> str:
    """Returns the HTML of an explanation; see `Explanation.to_html`."""
    answer = shown.answer_text(explanation.variants[0].answer)
    root, main = start_page(answer, _STYLE)
    names = {"left_out": "Leaving a word out", "gradient": "Gradient"}
    for name, title in names.items():
        add(main, "h2", title)
        values = getattr(explanation, name)
        if explanation.has_several:
            _add_heat(
                main,
                (explanation.answers, explanation.words),
                values,
                shown.signed,
            )
        else:
            _add_words(main, explanation.words, values[0])
        _add_note(main, name, explanation)
    if len(explanation.movements):
        add(main, "h2", "What the adapters move")
        blocks = [f"block {i + 1}" for i in range(len(explanation.movements))]
        axes = blocks, explanation.words
        _add_heat(main, axes, explanation.movements, shown.percent)
        _add_note(main, "movements", explanation)
    if explanation.members:
        add(main, "h2", "Which member each word uses")
        axes = explanation.members, explanation.words
        weights = explanation.mean_member_weights.T
        _add_heat(main, axes, weights, shown.percent)
        _add_note(main, "members", explanation)
    _add_variants(main, explanation)
    return as_html(root)


def _add_note(main: Any, name: str, explanation: Explanation) -> None:
    text = _NOTES[name].format(score=explanation.score_name)
    add(main, "p", text, {"class": "note"})


def _background(share: float) -> dict[str, str]:
    """Returns the style of a cell whose value is `share` of the largest."""
    color = _FOR if share > 0 else _AGAINST
    strength = _STRONGEST * abs(share)
    return {"style": f"background: rgba({color},{strength:.2f})"}


def _add_words(main: Any, words: Sequence[str], values: np.ndarray) -> None:
    """Adds a text whose words are shaded, and show their value on hovering."""
    line = add(main, "p", None, {"class": "shows words"})
    for word, value, share in zip(
        words, values, shown.shares(values), strict=True
    ):
        title = shown.signed(value)
        span = add(line, "span", word, _background(share), title=title)
        span.tail = " "
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    strongest = [
        f"{words[i]} {shown.signed(float(values[i]))}"
        for i in order[:5]
        if not np.isnan(values[i])
    ]
    add(main, "p", ", ".join(strongest))


def _add_heat(
    main: Any,
    axes: tuple[Sequence[str], Sequence[str]],
    values: np.ndarray,
    text_of: Callable[[float], str],
) -> None:
    """Adds a table of shaded numbers, with a row for each word.

    Args:
        main: Element to add the table to.
        axes: Names of the columns and of the rows.
        values: Array `(columns, rows)`.
        text_of: Function that returns the text of a number.
    """
    frame = add(main, "div", None, {"class": "table heat"})
    table = add(frame, "table")
    line = add(add(table, "thead"), "tr")
    for name in ("", *axes[0]):
        add(line, "th", name)
    body, shares = add(table, "tbody"), shown.shares(values)
    for row, name in enumerate(axes[1]):
        line = add(body, "tr")
        add(line, "th", name)
        for value, share in zip(values[:, row], shares[:, row], strict=True):
            add(line, "td", text_of(value), _background(share))


def _add_variants(main: Any, explanation: Explanation) -> None:
    add(main, "h2", "Without adapters")
    frame = add(main, "div", None, {"class": "table"})
    table = add(frame, "table")
    line = add(add(table, "thead"), "tr")
    for name in ("adapters", "answer", explanation.name_of_mean):
        add(line, "th", name)
    body = add(table, "tbody")
    for variant in explanation.variants:
        line = add(body, "tr")
        add(line, "td", variant.name)
        add(line, "td", shown.answer_text(variant.answer))
        add(line, "td", shown.signed(variant.scores.mean()))
