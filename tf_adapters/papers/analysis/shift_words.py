"""Draws a word cloud of the tokens that AdapterBias shifts farthest."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import pandas as pd

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import vocabulary
from tf_adapters.papers.analysis import token_shift
from tf_adapters.papers.analysis.support import trained_run
from tf_adapters.papers.analysis.support.analysis import Analysis
from tf_adapters.papers.analysis.support.analysis import at_least_one
from tf_adapters.papers.analysis.support.analysis import register
from tf_adapters.papers.analysis.support.passes import probe_passes
from tf_adapters.report import drawing

if TYPE_CHECKING:
    import argparse

    from tf_adapters.runs.experiment import Experiment


COLUMNS = ("token", "shift", "count")


def mean_shifts(
    token_ids: Any, alphas: np.ndarray, lengths: Any
) -> dict[Any, tuple[float, int]]:
    """Returns each token's mean shift and its number of occurrences.

    Args:
        token_ids: Integers `(n,)`.
        alphas: Array `(blocks, n)` with the weight of each token's shift.
        lengths: Length of each block's shift vector, `(blocks,)`.

    Returns:
        Dict from token id to a pair: the mean of `|alpha| |v|` over the token's
        occurrences and all blocks, and the number of occurrences.
    """
    shifts = np.mean(np.abs(alphas) * np.asarray(lengths)[:, None], axis=0)
    found = collections.defaultdict(list)
    for token, shift in zip(token_ids, shifts, strict=True):
        found[int(token)].append(shift)
    return {t: (float(np.mean(some)), len(some)) for t, some in found.items()}


@register("shift_words")
class ShiftWords(Analysis):
    """Draws a word cloud of the tokens that AdapterBias shifts farthest.

    Averages the length of the shift, `|alpha| |v|`, over all occurrences of a
    token in the validation set and over all blocks. Special and rare tokens are
    left out. See AdapterBias, section 4.7. The paper's figure was not available
    when this was written, so averaging over all blocks is our choice.
    """

    def add_flags(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--tokens", type=at_least_one, default=80, help="shown; 80"
        )
        parser.add_argument(
            "--least",
            type=at_least_one,
            default=3,
            help="least number of positions; 3",
        )

    def table(self, options: Any) -> pd.DataFrame:
        run = trained_run.load_run(options.folders[0])
        experiment = run.experiment()
        found = mean_shifts(*_shifted_tokens(run, experiment))
        names = vocabulary.tokens_of(experiment.tokenizer)
        special = set(experiment.packer.special_ids)
        rows = [
            (names[token], shift, count)
            for token, (shift, count) in found.items()
            if token not in special and count >= options.least
        ]
        if not rows:
            raise UserError(
                f"No token of {run.folder}'s validation set occurs at "
                f"{options.least} positions. Lower --least."
            )
        rows.sort(key=lambda row: -row[1])
        return pd.DataFrame(rows[: options.tokens], columns=COLUMNS)

    def draw(self, table: Any) -> Any:
        # Imported here, because other analyses do not need it.
        import wordcloud

        cloud = wordcloud.WordCloud(
            width=1200,
            height=800,
            background_color="white",
            color_func=lambda *_, **__: drawing.COLORS[0],
            random_state=0,
        ).generate_from_frequencies(
            dict(zip(table.token, table["shift"], strict=True))
        )
        figure, ((axes,),) = drawing.make_figure()
        axes.imshow(cloud, interpolation="bilinear")
        axes.set_axis_off()
        axes.set_title("tokens by the mean length of their shift", size=9)
        return figure


def _shifted_tokens(
    run: Any, experiment: Experiment
) -> tuple[np.ndarray, np.ndarray, list[Any]]:
    """Returns the arguments of `mean_shifts` for a run's validation set."""
    lengths = token_shift.vector_lengths(run, experiment.model)
    ids, alphas = [], []
    for _, inputs, found in probe_passes(
        experiment, run.rows["validation"], token_shift.read_alphas
    ):
        mask = inputs["padding_mask"].numpy().astype(bool)
        ids.append(inputs["token_ids"].numpy()[mask])
        alphas.append(np.stack([a.numpy()[..., 0][mask] for a in found]))
    return np.concatenate(ids), np.concatenate(alphas, axis=1), lengths
