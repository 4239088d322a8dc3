"""The systems and versions of Python on which the wheel can be installed.

    python -m release.systems dist/tf_adapters-0.1.0-py3-none-any.whl

Resolves the wheel's dependencies for each system and version, from wheels only,
and writes the table in README.md. Nothing is installed: that needs the system.
"""

from pathlib import Path
import re
import subprocess
import sys

from release import lock

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "README.md"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux, x86-64": "x86_64-manylinux_2_28",
    "Linux, ARM": "aarch64-manylinux_2_28",
    "macOS, ARM": "aarch64-apple-darwin",
    "Windows": "x86_64-pc-windows-msvc",
}
# Pure Python that is published as source only; pip builds it on any system.
_SOURCE = ("promise", "seqeval")


def resolves(wheel: Path, system: str, python: str) -> bool:
    """Returns whether wheels for all dependencies of a wheel exist.

    Args:
        wheel: Path of the wheel.
        system: One of uv's names of platforms.
        python: Version of Python.
    """
    options = [f"--no-binary={name}" for name in _SOURCE]
    try:
        lock.uv(
            *("pip", "compile", "-", "--quiet", "--no-config"),
            *("--only-binary=:all:", *options),
            *(f"--python-platform={system}", f"--python-version={python}"),
            given=f"tf_adapters @ {wheel.resolve().as_uri()}\n",
        )
    except subprocess.CalledProcessError:
        return False
    return True


def table(wheel: Path) -> str:
    """Returns the table in Markdown: the versions of Python on each system."""
    cells = [
        ", ".join(one for one in PYTHONS if resolves(wheel, system, one))
        for system in SYSTEMS.values()
    ]
    return as_table(cells)


def as_table(cells: list[str]) -> str:
    """Returns the table in Markdown, with a cell for each of `SYSTEMS`."""
    rows = [
        f"| system | {' | '.join(SYSTEMS)} |",
        f"|---|{'---|' * len(SYSTEMS)}",
        f"| Python | {' | '.join(cell or 'none' for cell in cells)} |",
    ]
    return "\n".join(rows) + "\n"


def with_table(text: str, made: str) -> str:
    """Returns a document in which the table is replaced by a new one."""
    old = re.compile(r"^\| system \|.*\n\|---.*\n\| Python \|.*\n", re.M)
    if len(old.findall(text)) != 1:
        raise ValueError(f"{DOCUMENT.name} must have one table of systems.")
    return old.sub(lambda _: made, text)


def main() -> None:
    """Writes the table into README.md."""
    made = table(Path(sys.argv[1]))
    print(made)
    text = DOCUMENT.read_text(encoding="utf-8")
    DOCUMENT.write_text(with_table(text, made), encoding="utf-8")


if __name__ == "__main__":
    main()
