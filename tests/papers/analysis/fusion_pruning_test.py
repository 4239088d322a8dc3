"""Tests the ranking of a fusion's members, and the files of pruning."""

import numpy as np
import pandas as pd

from tf_adapters.papers.analysis import fusion_pruning


def test_the_ranking_is_by_the_mean_over_places():
    weights = {
        (0, "after_ffn"): np.array([0.1, 0.5, 0.4]),
        (1, "after_ffn"): np.array([0.6, 0.1, 0.3]),
    }
    ranked = fusion_pruning.ranking(weights, ("a", "b", "c"))
    # Means 0.35, 0.30, 0.35: of equals the earlier one.
    assert ranked == ["a", "c", "b"]


def test_picture():
    rows = [
        (2, "a b", "f1", 0.8, 1.0, 1.0, 1.0),
        (1, "a", "f1", 0.7, 1.1, 1.0, 1.2),
    ]
    table = pd.DataFrame(rows, columns=fusion_pruning.COLUMNS)
    (axes,) = fusion_pruning.FusionPruning().draw(table).axes
    assert axes.get_lines()[0].get_ydata().tolist() == [0.8, 0.7]
    assert axes.get_ylabel() == "validation f1"
