"""The picture of the package's folders in CONTRIBUTING, made from imports.

    python -m tests.lint.floors

writes it. Each folder is one floor above the highest folder that it imports
from. An arrow is left out if others lead to the same folder.
"""

import ast
import functools
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "tf_adapters"
DOCUMENT = ROOT / "CONTRIBUTING.md"
_BEGIN = "<!-- floors: made by tests/lint/floors.py. -->\n"
_END = "<!-- Until here. -->\n"


def imports(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Returns a dict from each folder to the folders that it imports from."""
    folders = sorted(path.parent.name for path in package.glob("*/__init__.py"))
    return {
        folder: {
            imported
            for path in (package / folder).rglob("*.py")
            for imported in _folders_imported(path, package.name)
            if imported in folders and imported != folder
        }
        for folder in folders
    }


def _folders_imported(path: Path, package: str):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.startswith(f"{package}."):
                yield name.split(".")[1]


def floors(imported: dict[str, set[str]]) -> list[list[str]]:
    """Returns the folders by floor, the highest floor first."""

    @functools.cache
    def floor(folder: str) -> int:
        return max((1 + floor(other) for other in imported[folder]), default=0)

    heights = sorted({floor(folder) for folder in imported}, reverse=True)
    return [[f for f in imported if floor(f) == height] for height in heights]


def arrows(imported: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Returns the imports that no longer path of imports implies."""

    @functools.cache
    def below(folder: str) -> frozenset[str]:
        others = imported[folder]
        return frozenset(others).union(*map(below, others))

    return [
        (folder, other)
        for folder, others in imported.items()
        for other in sorted(others)
        if not any(other in below(one) for one in others)
    ]


def picture(imported: dict[str, set[str]]) -> str:
    """Returns the picture as Mermaid, which GitHub draws."""
    lines = [
        f"  {folder} --> {other}"
        for floor in floors(imported)
        for folder, other in arrows(imported)
        if folder in floor
    ]
    return "\n".join(["```mermaid", "flowchart TD", *lines, "```\n"])


def updated(text: str, made: str) -> str:
    """Returns the text of the document with the picture replaced."""
    before, rest = text.split(_BEGIN)
    _, after = rest.split(_END, 1)
    return f"{before}{_BEGIN}\n{made}\n{_END}{after}"


if __name__ == "__main__":
    found = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(updated(found, picture(imports())), encoding="utf-8")
