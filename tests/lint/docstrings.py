"""Compares the arguments in docstrings with signatures, by pydoclint.

    python -m tests.lint.docstrings

A docstring needs no section `Args`, but if it has one, the section must have
all arguments, in order. The other checks of pydoclint do not suit our
docstrings: "Returns ..." as a first sentence replaces a section, and a layer's
section `Returns` describes `call`.
"""

import ast
from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).parents[2]
# Too few, too many, different, or reordered arguments.
_CODES = ("DOC101", "DOC102", "DOC103", "DOC104")
_LINE = re.compile(
    r"(?P<path>[^:]+):(?P<line>\d+): (?P<code>DOC\d+): (?P<what>.*)"
)


def find(*paths):
    """Returns a list of the faults in files or folders, a line for each."""
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pydoclint.main", "--quiet"),
            f"--config={ROOT / 'pyproject.toml'}",
            *map(str, paths),
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    if run.returncode not in (0, 1) or "Traceback" in run.stderr:
        raise RuntimeError(run.stderr)
    found = map(_LINE.match, (run.stdout + run.stderr).splitlines())
    return [
        match.group()
        for match in found
        if match and match["code"] in _CODES and _has_args(match)
    ]


def _has_args(match):
    """Returns whether the docstring of a fault has a section `Args`.

    The arguments of `__init__` are in the docstring of its class.
    """
    tree = ast.parse((ROOT / match["path"]).read_text(encoding="utf-8"))
    documented = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    for node in ast.walk(tree):
        members = [node, *getattr(node, "body", ())]
        if isinstance(node, documented) and int(match["line"]) in [
            member.lineno
            for member in members
            if member is node or getattr(member, "name", "") == "__init__"
        ]:
            return "\nArgs:" in (ast.get_docstring(node) or "")
    return False


def main():
    """Prints the faults of the library; returns 1 if there are any, else 0."""
    found = find("tf_adapters")
    print("\n".join(found) or "Docstrings have the arguments of signatures.")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
