"""The counts of `tests.hostile.run`, as a table in docs/reliability.md."""

from pathlib import Path

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_BEGIN = "<!-- Made by tests/hostile/run.py. -->\n"
_END = "<!-- Until here. -->\n"
_OUTCOMES = ("refused", "answered", "closed", "wrong")


def write(counts, watch, seed):
    """Writes the table.

    Args:
        counts: Dict from the kind of attack to the counts of outcomes.
        watch: `siege.Watch`.
        seed: Seed of the attacks.
    """
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = [
        "| what a client sends | refused | answered | closed | wrong |",
        "|---|---|---|---|---|",
        *(
            f"| {kind} | {' | '.join(f'{n[key]:,}' for key in _OUTCOMES)} |"
            for kind, n in counts.items()
        ),
        "",
        f"{sum(map(sum, (n.values() for n in counts.values()))):,} connections "
        f"with seed {seed}. Meanwhile another client got {watch.right:,} "
        f"answers; {len(watch.wrong)} were not its adapter's. The "
        f"slowest took {watch.longest:.1f} s.",
    ]
    table = "".join(f"{line}\n" for line in lines)
    DOCUMENT.write_text(f"{before}{_BEGIN}\n{table}\n{_END}{after}", "utf-8")
