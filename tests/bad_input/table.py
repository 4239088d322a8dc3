"""All cases, and the table of them in docs/reliability.md.

    python -m tests.bad_input.table

writes the table again.
"""

from pathlib import Path

from tests.bad_input import data_cases
from tests.bad_input import folder_cases

CASES = data_cases.CASES + folder_cases.CASES
DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"
_SECTIONS = {
    "Texts": data_cases.TEXTS,
    "Files of data": data_cases.FILES,
    "Fields and labels": data_cases.FIELDS,
    "Splits": data_cases.SPLITS,
    "Adapters": folder_cases.ADAPTERS,
    "Encoders": folder_cases.ENCODERS,
    "Settings": folder_cases.SETTINGS_CASES,
    "Folders and disks": folder_cases.DISKS,
    "Training": folder_cases.TRAINING,
}
_BEGIN = "<!-- Made by tests/bad_input/table.py. -->\n"
_END = "<!-- Until here. -->\n"


def updated():
    """Returns the document with an updated table."""
    before, _, rest = DOCUMENT.read_text(encoding="utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = ["", "| given | what happens |", "|---|---|"]
    for section, cases in _SECTIONS.items():
        lines += [f"| **{section}** | |", *map(_line, cases)]
    table = "".join(f"{line}\n" for line in [*lines, ""])
    return f"{before}{_BEGIN}{table}{_END}{after}"


def _line(case):
    said = " ".join(case.then.split())
    happens = {
        "error": f"error: “{said}”",
        "warning": f"warning: “{said}”",
        "result": said,
    }
    return f"| {case.given} | {happens[case.outcome]} |"


if __name__ == "__main__":
    DOCUMENT.write_text(updated(), encoding="utf-8")
