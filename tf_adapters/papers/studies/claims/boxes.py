"""Finds the groups of runs, called boxes, whose spreads a claim compares."""

from __future__ import annotations

import collections
from collections.abc import Sequence
import json
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.papers.studies.claims import claim_pairs
from tf_adapters.papers.studies.claims import spreads

if TYPE_CHECKING:
    from tf_adapters.launch.planned_run import Run


def find_boxes(
    claim: Any,
    runs: Sequence[Run],
    rows: Any,
    split: Any,
    select_over: Sequence[Any] = (),
) -> list[Any]:
    """Returns the pairs of run groups that a claim about spreads compares.

    The runs of such a group, a box, differ only in the settings that
    `claim.spreads` names. The two boxes of a pair come from the two sides of
    the claim and have the same value for every setting that the claim does not
    compare. Boxes with fewer than `spreads.FEWEST` runs are left out.

    Args:
        claim: `Claim` with `spreads`.
        runs: List of `Run`.
        rows: Dicts of finished runs, from `report.run_rows`.
        split: The study's `report.split`, such as `"test"`.
        select_over: Keys that the study selects over, whose values may differ.

    Returns:
        List of pairs of boxes. A box is the list of its runs' metrics on
        `split`. The box of the side `claim.higher` comes first.
    """
    ignored = {*claim.higher, *claim.than, *claim.spreads, *select_over}
    keys = {
        key
        for run in runs
        for key in ("task", *run.point)
        if key not in ignored
    }
    high, low = (
        _boxes(claim_pairs.side_rows(claim, wanted, runs, rows), keys, split)
        for wanted in (claim.higher, claim.than)
    )
    return [
        (high[box], low[box])
        for box in high
        if box in low and min(len(high[box]), len(low[box])) >= spreads.FEWEST
    ]


def _boxes(rows: Any, keys: Any, split: Any) -> Any:
    boxes = collections.defaultdict(list)
    for row in rows:
        values = {key: row.get(key) for key in sorted(keys)}
        boxes[json.dumps(values, default=str)].append(row[split])
    return boxes
