"""The counts of `tests.fuzz.run`, as a table in docs/reliability.md."""

from pathlib import Path
import re

from tests.fuzz.readers import READERS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN = "<!-- Made by tests/fuzz/run.py. -->\n"
_END = "<!-- Until here. -->\n"
_TITLE = "| reader | seed | inputs | refused | read | faults |\n"
_ROW = re.compile(r"\| ([^|]+) \| (\d+ \| [\d, |]+\d) \|\n")


def line(count):
    """Returns the numbers of a `Count` as text."""
    return (
        f"{count.inputs:,} inputs, {count.refused:,} refused, "
        f"{count.read:,} read, {count.faults} faults"
    )


def written():
    """Returns a dict from readers' names to the text of their numbers."""
    return dict(_ROW.findall(_parts()[1]))


def _parts():
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    table, _, after = rest.partition(_END)
    return before, table, after


def write(counts, seed):
    """Writes the rows of some readers; those of the others stay.

    Args:
        counts: Dict from reader's name to `Count`.
        seed: Seed of the inputs.
    """
    rows = written()
    for name, count in counts.items():
        numbers = (count.inputs, count.refused, count.read, count.faults)
        rows[name] = " | ".join([str(seed), *(f"{n:,}" for n in numbers)])
    lines = "".join(
        f"| {name} | {rows[name]} |\n" for name in READERS if name in rows
    )
    before, _, after = _parts()
    table = f"\n{_TITLE}|---|---|---|---|---|---|\n{lines}\n"
    DOCUMENT.write_text(f"{before}{_BEGIN}{table}{_END}{after}", "utf-8")
