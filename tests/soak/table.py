"""The counts of `tests.soak.run`, as a table in docs/reliability.md."""

import collections
import itertools
from pathlib import Path

from tests.soak import faults
from tests.soak import kinds

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN = "<!-- Made by tests/soak/run.py. -->\n"
_END = "<!-- Until here. -->\n"


def write(records, seed):
    """Writes the table.

    Args:
        records: List of what `trial.run` returned.
        seed: Seed of the trials.
    """
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    DOCUMENT.write_text(
        f"{before}{_BEGIN}\n{_table(records, seed)}\n{_END}{after}", "utf-8"
    )


def _table(records, seed):
    tried = collections.Counter(
        name for record in records for name in record["faults"]
    )
    lost = collections.Counter(
        name
        for record in records
        if record["wrong"]
        for name in set(record["faults"])
    )
    lines = [
        f"{len(records)} trials with seed {seed}; "
        f"{sum(bool(one['wrong']) for one in records)} did not end the same.",
        "",
        "| trials of | number | did not end the same |",
        "|---|---|---|",
        *map(_row_of_kind, kinds.KINDS, itertools.repeat(records)),
        "",
        "| fault | times | in trials that did not end the same |",
        "|---|---|---|",
        *(f"| {name} | {tried[name]} | {lost[name]} |" for name in faults.ALL),
    ]
    return "".join(f"{line}\n" for line in lines)


def _row_of_kind(kind, records):
    wrong = [
        bool(one["wrong"])
        for one in records
        if kinds.kind_of(one["number"]) == kind
    ]
    return f"| {kind.name} | {len(wrong)} | {sum(wrong)} |"
