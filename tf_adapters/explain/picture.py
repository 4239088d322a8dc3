"""Draws an explanation."""

from __future__ import annotations

from collections.abc import Sequence
import io
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.explain import shown
from tf_adapters.report import drawing

if TYPE_CHECKING:
    from tf_adapters.explain.explanation import Explanation

# Inches for each word, and around the words.
_WORD, _AROUND = 0.22, 1.3


def to_bytes(explanation: Explanation, kind: str) -> bytes:
    """Draws an explanation, and returns the content of a picture file.

    The panels are: what decides, what each block's adapter moves, which members
    of a fusion are used, and the answer without adapters. The words are the
    rows of the first panels.

    Args:
        explanation: `Explanation`.
        kind: `"png"`, `"svg"` or `"pdf"`.

    Raises:
        ConfigError: If Matplotlib is not installed.
    """
    panels = [_draw_decisive]
    if len(explanation.movements):
        panels.append(_draw_movements)
    if explanation.members:
        panels.append(_draw_members)
    panels.append(_draw_variants)
    figure, axes = drawing.make_figure(
        1,
        len(panels),
        width=2.9,
        height=_AROUND + _WORD * max(len(explanation.words), 6),
    )
    for draw, one in zip(panels, axes[0], strict=True):
        draw(one, explanation)
    title = shown.answer_text(explanation.variants[0].answer)
    figure.suptitle(drawing.plain(title), size=10)
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()


def _name_words(axes: Any, explanation: Explanation) -> None:
    words = [drawing.plain(word) for word in explanation.words]
    axes.set_yticks(range(len(words)), words)
    axes.set_ylim(len(words) - 0.5, -0.5)


def _draw_decisive(axes: Any, explanation: Explanation) -> None:
    """Draws what each word contributes: bars, or a heatmap if of words."""
    if explanation.has_several:
        values = np.nan_to_num(explanation.left_out).T
        limit = max(np.abs(values).max(), 1e-12)
        _draw_heat(
            axes,
            values,
            explanation.answers,
            cmap="RdBu",
            limits=(-limit, limit),
        )
        title = f"{explanation.score_name}, word left out"
        drawing.label_axes(axes, "", "", title)
    else:
        _draw_bars(axes, explanation)
    _name_words(axes, explanation)


def _draw_bars(axes: Any, explanation: Explanation) -> None:
    """Draws bars: leaving a word out, and gradient times input.

    The gradient has a scale of its own, because only its proportions mean
    something.
    """
    places = np.arange(len(explanation.words))
    left_out = np.nan_to_num(explanation.left_out[0])
    gradient = shown.shares(explanation.gradient[0])
    gradient *= max(np.abs(left_out).max(), 1e-12)
    handles = []
    for i, values in enumerate((left_out, gradient)):
        height, color = 0.38, drawing.COLORS[i]
        at = places + (i - 0.5) * height
        handles.append(axes.barh(at, values, height, color=color))
    names = ("word left out", "gradient times input (scaled)")
    axes.figure.legend(
        handles, names, loc="outside lower left", fontsize=8, ncols=2
    )
    axes.axvline(0, color="black", linewidth=0.8)
    # More numbers of several digits would overlap.
    axes.locator_params(axis="x", nbins=4)
    title = drawing.plain(f"for {explanation.answers[0]}")
    drawing.label_axes(axes, explanation.score_name, "", title)


def _draw_heat(
    axes: Any,
    values: np.ndarray,
    columns: Sequence[str],
    cmap: str,
    limits: tuple[float, float],
) -> None:
    """Draws a matrix `(words, columns)` as a heatmap with named columns."""
    axes.imshow(
        values, cmap=cmap, vmin=limits[0], vmax=limits[1], aspect="auto"
    )
    axes.grid(False)
    names = [drawing.plain(name) for name in columns]
    axes.set_xticks(range(len(names)), names, rotation=90)


def _draw_movements(axes: Any, explanation: Explanation) -> None:
    values = explanation.movements.T
    names = [str(i + 1) for i in range(len(explanation.movements))]
    most = max(values.max(), 1e-12)
    _draw_heat(axes, values, names, cmap="Blues", limits=(0, most))
    axes.tick_params(axis="x", rotation=0)
    title = f"moved by adapters, at most {shown.percent(most)}"
    drawing.label_axes(axes, "block", "", title)
    _name_words(axes, explanation)


def _draw_members(axes: Any, explanation: Explanation) -> None:
    values = explanation.mean_member_weights
    names = explanation.members
    _draw_heat(axes, values, names, cmap="Blues", limits=(0, 1))
    most = shown.percent(values.max())
    title = f"attention to members, at most {most}"
    drawing.label_axes(axes, "", "", title)
    _name_words(axes, explanation)


def _draw_variants(axes: Any, explanation: Explanation) -> None:
    """Draws the mean score of the answers for each variant of the model."""
    variants = explanation.variants
    places = range(len(variants))
    axes.barh(
        places,
        [variant.scores.mean() for variant in variants],
        color=drawing.COLORS[2],
    )
    axes.axvline(0, color="black", linewidth=0.8)
    axes.set_yticks(places, [variant.name for variant in variants])
    axes.invert_yaxis()
    drawing.label_axes(axes, explanation.name_of_mean, "", "without adapters")
