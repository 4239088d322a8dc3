"""Rows of measured values, in the form that `bench.py` reads and compares.

A script that measures adds an option `--output` to its command line, and
appends a row of JSON for each line of its table.
"""

import json
from pathlib import Path

# Digits that are written; turns of a measurement differ in the third.
_DIGITS = 5


def row(
    case, unit, ours, theirs=None, compared_with=None, more_is_better=False
):
    """Returns a row: the values of one case, one for each turn.

    Args:
        case: String that says what was measured, unique within a script.
        unit: String, such as "s" or "texts/s".
        ours: List of our values.
        theirs: List of the values of what ours is compared with, measured in
            turn with ours. `None` (default) if there is nothing to compare.
        compared_with: String, what `theirs` are the values of.
        more_is_better: Whether a larger value is better, as for speeds.
            Defaults to `False`, as for seconds and bytes.
    """
    found = {"case": case, "unit": unit, "more_is_better": more_is_better}
    found["ours"] = _rounded(ours)
    if theirs is not None:
        found["theirs"] = _rounded(theirs)
        found["compared_with"] = compared_with
    return found


def _rounded(values):
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def ratios(found):
    """Returns how many times as good as theirs ours is, for each turn.

    Args:
        found: Row with `theirs`. 2 means twice as fast, or half the memory.
    """
    pairs = zip(found["ours"], found["theirs"], strict=True)
    if found["more_is_better"]:
        return [ours / theirs for ours, theirs in pairs]
    return [theirs / ours for ours, theirs in pairs]


def goodness(found):
    """Returns a number for each turn, larger if ours is better.

    Ratios if there is something to compare with: what else the machine does
    slows both sides down. Otherwise values, or their reciprocals if less is
    better.
    """
    if "theirs" in found:
        return ratios(found)
    if found["more_is_better"]:
        return found["ours"]
    return [1 / value for value in found["ours"]]


def add_option(parser):
    """Adds `--output` to the options of a script."""
    parser.add_argument(
        "--output", type=Path, help="JSONL file to which rows are appended."
    )


def write(path, rows):
    """Appends rows to a JSONL file, unless the path is `None`."""
    if path is None:
        return
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in rows)


def read(path):
    """Returns the rows of a JSONL file, or an empty list without a file."""
    if not path.exists():
        return []
    return parse(path.read_text(encoding="utf-8"))


def parse(text):
    """Returns the rows of the text of a JSONL file."""
    return [json.loads(line) for line in text.splitlines()]
