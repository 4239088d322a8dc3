"""Ranking a fusion's members, and the files that pruning writes."""

import numpy as np

from tf_adapters.analysis import fusion_pruning


def test_the_ranking_is_by_the_mean_over_places():
    weights = {
        (0, "after_ffn"): np.array([0.1, 0.5, 0.4]),
        (1, "after_ffn"): np.array([0.6, 0.1, 0.3]),
    }
    ranked = fusion_pruning.ranking(weights, ("a", "b", "c"))
    # Means 0.35, 0.30, 0.35: of equals the earlier one.
    assert ranked == ["a", "c", "b"]


def test_picture(tmp_path):
    rows = [
        (2, "a b", "f1", 0.8, 1.0, 1.0, 1.0),
        (1, "a", "f1", 0.7, 1.1, 1.0, 1.2),
    ]
    fusion_pruning.plot(rows, tmp_path / "picture.png")
    assert (tmp_path / "picture.png").stat().st_size > 3000
