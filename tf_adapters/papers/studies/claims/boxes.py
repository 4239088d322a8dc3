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
    compare. A small box seems to vary less than a large one, so both boxes of a
    pair get the same number of runs: the larger box loses runs, first those
    whose settings in `claim.spreads` do not occur in the other box. Boxes with
    fewer than `spreads.FEWEST` runs are left out.

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
        _of_equal_size(one, other, claim.spreads)
        for box in high
        for one in high[box]
        for other in low.get(box, [])
    ]
    return [
        tuple([row[split] for row in box] for box in pair)
        for pair in pairs
        if len(pair[0]) >= spreads.FEWEST
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
    """Drops rows of the larger box, first those without a counterpart.

    A counterpart is a row of the other box with the same values of the settings
    `varied`.
    """
    size = min(len(high), len(low))
    return tuple(
        sorted(own, key=lambda row: _values(row, varied) not in there)[:size]
        for own, there in (
            (high, {_values(row, varied) for row in low}),
            (low, {_values(row, varied) for row in high}),
        )
    )
