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
    """Returns the run groups that a claim about spreads compares.

    The runs of such a group, a box, differ only in the settings that
    `claim.spreads` names. A pair has all boxes of both sides of the claim that
    have the same value for every setting that the claim does not compare. A
    side has several boxes if only it has a setting, such as the size of
    adapters. They are not pairs of their own, because all of them would be
    compared with the same runs. A small box seems to vary less than a large
    one, so all boxes of a pair get the same number of runs: larger boxes lose
    runs, first those whose settings in `claim.spreads` do not occur on the
    other side. Boxes with fewer than `spreads.FEWEST` runs are left out.

    Args:
        claim: `Claim` with `spreads`.
        runs: List of `Run`.
        rows: Dicts of finished runs, from `report.run_rows`.
        split: The study's `report.split`, such as `"test"`.
        select_over: Keys that the study selects over, whose values may differ.

    Returns:
        List of pairs of sides, first `claim.higher`. A side is a list of
        boxes, and a box is the list of its runs' metrics on `split`.
    """
    ignored = {*claim.higher, *claim.than, *claim.spreads, *select_over}
    points = {run.id: {"task", *run.point} - ignored for run in runs}
    sides = [
        claim_pairs.side_rows(claim, wanted, runs, rows)
        for wanted in (claim.higher, claim.than)
    ]
    of_high, of_low = (
        set().union(*(points[row["run"]] for row in side)) for side in sides
    )
    # Only one side may have a key, such as the size of adapters.
    shared = of_high & of_low
    high, low = (
        _boxes(side, shared, of_side - shared)
        for side, of_side in zip(sides, (of_high, of_low), strict=True)
    )
    pairs = [
        _of_equal_size(high[key], low.get(key, []), claim.spreads)
        for key in high
    ]
    return [
        tuple([[row[split] for row in box] for box in side] for side in pair)
        for pair in pairs
        if all(pair)
    ]


def _boxes(rows: Any, shared: Any, own: Any) -> dict[str, list[Any]]:
    """Returns a dict from values of the keys `shared` to boxes of rows.

    Rows of a box also have equal values of the keys `own`.
    """
    boxes = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        box = boxes[_values(row, sorted(shared))]
        box[_values(row, sorted(own))].append(row)
    return {key: list(found.values()) for key, found in boxes.items()}


def _values(row: Any, keys: Any) -> str:
    return json.dumps({key: row.get(key) for key in keys}, default=str)


def _of_equal_size(high: Any, low: Any, varied: Any) -> tuple[Any, ...]:
    """Drops small boxes, and rows of large ones that have no counterpart.

    A counterpart is a row of the other side with the same values of the
    settings `varied`.
    """
    high, low = (
        [box for box in side if len(box) >= spreads.FEWEST]
        for side in (high, low)
    )
    size = min((len(box) for box in (*high, *low)), default=0)
    return tuple(
        [
            sorted(box, key=lambda row: _values(row, varied) not in there)[
                :size
            ]
            for box in own
        ]
        for own, there in (
            (high, {_values(row, varied) for box in low for row in box}),
            (low, {_values(row, varied) for box in high for row in box}),
        )
    )
