"""The counts of `tests.fuzz.run`, as a table in docs/reliability.md."""

from pathlib import Path
import re

from tests.fuzz import campaign
from tests.fuzz.outcomes import Count
from tests.fuzz.outcomes import Outcomes
from tests.fuzz.readers import READERS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN = "<!-- Made by tests/fuzz/run.py. -->\n"
_END = "<!-- Until here. -->\n"
_TITLE = "| reader | seeds | inputs | refused | read | faults |\n"
_ROW = re.compile(r"\| ([^|]+) \| (\d[\d, |]+\d) \|\n")


def file_of(folder, name, seed):
    """Returns the path of the outcomes of a reader with a seed."""
    return campaign.folder_of(folder, name) / f"{seed}.txt"


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


def write(folder):
    """Writes the rows of the readers with outcomes; those of others stay.

    Args:
        folder: Folder with the outcomes of all seeds.
    """
    rows = written()
    for name in READERS:
        files = sorted(campaign.folder_of(folder, name).glob("*.txt"))
        if files:
            rows[name] = _row(files)
    lines = "".join(
        f"| {name} | {rows[name]} |\n" for name in READERS if name in rows
    )
    before, _, after = _parts()
    table = f"\n{_TITLE}|---|---|---|---|---|---|\n{lines}\n"
    DOCUMENT.write_text(f"{before}{_BEGIN}{table}{_END}{after}", "utf-8")


def _row(files):
    total = sum((Outcomes(file).count() for file in files), Count())
    numbers = (total.inputs, total.refused, total.read, total.faults)
    seeds = ", ".join(sorted((file.stem for file in files), key=int))
    return " | ".join([seeds, *(f"{n:,}" for n in numbers)])
