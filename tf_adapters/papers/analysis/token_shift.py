"""Shows how far AdapterBias shifts tokens in each block."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.passes import probe_passes
from tf_adapters.papers.analysis.support.trained_run import RunsAnalysis
from tf_adapters.report import drawing

COLUMNS = ("run", "task", "block", "place", "alpha", "shift")


def mean_token_shifts(
    alphas: Sequence[Any], mask: np.ndarray
) -> tuple[np.ndarray, Any]:
    """Sums `|alpha|` over the tokens of a batch in each block, without padding.

    Args:
        alphas: List of arrays `(batch, tokens, 1)`, one for each block.
        mask: Array `(batch, tokens)`, 1 for tokens and 0 for padding.

    Returns:
        Sums for each block `(blocks,)`, and the number of tokens.
    """
    mask = np.asarray(mask, "float64")
    sums = [np.sum(np.abs(alpha[..., 0]) * mask) for alpha in alphas]
    return np.array(sums), mask.sum()


@register("token_shift")
class TokenShift(RunsAnalysis):
    """Shows the mean weight of AdapterBias's shift, by block.

    Averages `|alpha|` and the length of the shift, `|alpha| |v|`, over all
    tokens of the validation set. Both show which blocks the task changes most
    (AdapterBias, section 4.7, figure 6). There is a panel for each task, with
    the first block on top. Several runs are averaged, and bars show the
    standard error.
    """

    columns = COLUMNS

    def rows(self, run: Any, options: Any) -> Iterator[Any]:
        values, lengths = _of_run(run)
        for block, (alpha, length) in enumerate(
            zip(values, lengths, strict=True), start=1
        ):
            place = "last" if block == len(values) else "earlier"
            yield run.task.name, block, place, alpha, alpha * length

    def draw(self, table: Any) -> Any:
        figure, panels = pictures.make_panels(
            table, "task", width=2.8, sharey=True
        )
        for axis, task, rows in panels:
            here = shifts_of_blocks(rows)
            axis.barh(
                here.index,
                here["mean"],
                xerr=here["sem"],
                color=drawing.COLORS[0],
                capsize=2,
            )
            axis.set_yticks(here.index)
            runs = here["count"].max()
            title = task if runs == 1 else f"{task}, mean of {runs} runs"
            error = "" if runs == 1 else "; bars: standard error"
            drawing.label_axes(axis, f"mean |alpha|{error}", "", title)
        first, *_ = panels[0]
        first.invert_yaxis()
        first.set_ylabel("block", size=9)
        return figure


def shifts_of_blocks(table: Any) -> Any:
    """Summarizes `|alpha|` over runs, for each block.

    Returns a `DataFrame` indexed by block, with the columns `mean`, `sem` (the
    standard error) and `count`.
    """
    return table.groupby("block").alpha.agg(["mean", "sem", "count"])


def _of_run(run: Any) -> tuple[Any, list[Any]]:
    """Returns each block's mean `|alpha|`, and its shift vector's length."""
    experiment = run.experiment()
    lengths = vector_lengths(run, experiment.model)
    total: Any = 0.0
    tokens = 0.0
    for _, inputs, alphas in probe_passes(
        experiment, run.rows["validation"], read_alphas
    ):
        alphas = [alpha.numpy() for alpha in alphas]
        sums, count = mean_token_shifts(alphas, inputs["padding_mask"].numpy())
        total, tokens = total + sums, tokens + count
    return total / tokens, lengths


def read_alphas(outputs: Any) -> list[Any]:
    """Returns each block's shift weights `alpha`, `(batch, tokens, 1)`.

    `outputs` are the encoder's outputs, including probes.
    """
    return [probe["after_ffn"]["alpha"] for probe in outputs["probes"]]


def vector_lengths(run: Any, model: Any) -> list[Any]:
    """Returns the length of each block's shift vector.

    Raises:
        UserError: If the model is not an AdapterBias model with a weight for
            each token.
    """
    from tf_adapters.methods.adapter_bias import Shift

    slots = [of_block.get("after_ffn") for of_block in model.slots]
    if not all(isinstance(s, Shift) and s.alpha is not None for s in slots):
        raise UserError(
            f"{run.folder} has no shift with a weight in every block. "
            "--method=adapter_bias trains one."
        )
    return [np.linalg.norm(slot.vector.call().numpy()) for slot in slots]
