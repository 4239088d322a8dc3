"""The counts of `tests.served.run`, as a table in docs/reliability.md."""

from pathlib import Path
import re

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN = "<!-- Made by tests/served/run.py. -->\n"
_END = "<!-- Until here. -->\n"
_ROW = re.compile(r"\| ([^|]+) \| (\d+ \| [\d, |]+\d) \|\n")


def write(counts, seed):
    """Writes the rows of some signatures; those of the others stay.

    Args:
        counts: Dict from signature to the `Count` of requests.
        seed: Seed of the requests.
    """
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    table, _, after = rest.partition(_END)
    rows = dict(_ROW.findall(table))
    for name, n in counts.items():
        numbers = (n.refused, n.read, n.faults)
        rows[name] = " | ".join([str(seed), *(f"{x:,}" for x in numbers)])
    lines = [
        "| signature | seed | refused | answered | wrong |",
        "|---|---|---|---|---|",
        *(f"| {name} | {numbers} |" for name, numbers in rows.items()),
    ]
    table = "".join(f"{line}\n" for line in lines)
    DOCUMENT.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", "utf-8")
