"""The counts of `tests.served.run`, as a table in docs/reliability.md."""

from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN = "<!-- Made by tests/served/run.py. -->\n"
_END = "<!-- Until here. -->\n"


def write(counts, seed):
    """Writes the table.

    Args:
        counts: Dict from signature to the counts of requests.
        seed: Seed of the requests.
    """
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    after = rest.partition(_END)[2]
    lines = [
        f"Requests with seed {seed}:",
        "",
        "| signature | refused | answered | wrong |",
        "|---|---|---|---|",
        *(
            f"| {name} | {n['refused']:,} | {n['answered']:,} | {n['wrong']} |"
            for name, n in counts.items()
        ),
    ]
    table = "".join(f"{line}\n" for line in lines)
    DOCUMENT.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", "utf-8")
