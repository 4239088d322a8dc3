"""Short texts for the numbers and answers of an explanation."""

from __future__ import annotations

from typing import Any

import numpy as np

_LONGEST = 60


def answer_text(answer: dict[str, Any]) -> str:
    """Returns an answer as one line, such as "positive (0.97)".

    Args:
        answer: A dict that `TextModel.answer` returns for a text.
    """
    probabilities = answer.get("probabilities", {})
    if "label" in answer:
        return f"{answer['label']} ({probabilities[answer['label']]:.2f})"
    if "labels" in answer:
        found = [f"{n} ({probabilities[n]:.2f})" for n in answer["labels"]]
        return ", ".join(found) or "no class"
    if "tags" in answer:
        return _cut(" ".join(answer["tags"]))
    if "answer" in answer:
        return _cut(answer["answer"] or "no answer")
    return f"{answer['score']:.4g}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def signed(value: float) -> str:
    """Returns a number with its sign; "" for NaN."""
    if np.isnan(value):
        return ""
    return f"{value:+.2f}" if abs(value) >= 0.1 else f"{value:+.3f}"


def percent(value: float) -> str:
    """Returns a share in percent, such as "12%" or "1.2%"."""
    return f"{100 * value:.0f}%" if value >= 0.0995 else f"{100 * value:.1f}%"


def shares(values: np.ndarray) -> np.ndarray:
    """Divides values by the largest absolute value, so that they fit a scale.

    NaN becomes 0.
    """
    values = np.nan_to_num(values)
    return values / max(np.abs(values).max(initial=0.0), 1e-12)
