"""The systems and versions of Python on which the wheel can be installed.

    python -m release.systems dist/tf_adapters-0.1.0-py3-none-any.whl

Resolves the wheel's dependencies for each system and version, from wheels only,
and writes the table in README.md. Nothing is installed: that needs the system.
"""

from pathlib import Path
import subprocess
import sys

from release import lock

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "README.md"
_BEGIN = "<!-- systems: made by release/systems.py. -->\n"
_END = "<!-- Until here. -->\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux, x86-64": "x86_64-manylinux_2_28",
    "Linux, ARM": "aarch64-manylinux_2_28",
    "macOS, ARM": "aarch64-apple-darwin",
    "Windows": "x86_64-pc-windows-msvc",
}
# Pure Python that is published as source only; pip builds it on any system.
_SOURCE = ("promise", "seqeval")


def resolves(wheel: Path, system: str, python: str) -> int:
    """Counts the packages that an installation of the wheel takes.

    Args:
        wheel: Path of the wheel.
        system: One of uv's names of platforms.
        python: Version of Python.

    Returns:
        Number of packages, or 0 if there is no set of wheels.
    """
    options = [f"--no-binary={name}" for name in _SOURCE]
    try:
        text = lock.uv(
            *("pip", "compile", "-", "--quiet", "--no-config", "--no-header"),
            *("--no-annotate", "--only-binary=:all:", *options),
            *(f"--python-platform={system}", f"--python-version={python}"),
            given=f"tf_adapters @ {wheel.resolve().as_uri()}\n",
        )
    except subprocess.CalledProcessError:
        return 0
    return len(text.splitlines()) - 1  # Without the wheel itself.


def table(wheel: Path) -> str:
    """Returns the table in Markdown: a row for each system."""
    rows = [
        f"| system | {' | '.join(f'Python {one}' for one in PYTHONS)} |",
        f"|---|{'---|' * len(PYTHONS)}",
    ]
    for name, system in SYSTEMS.items():
        counts = [resolves(wheel, system, python) for python in PYTHONS]
        cells = [f"{count} packages" if count else "no" for count in counts]
        rows.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Writes the table into README.md."""
    text = DOCUMENT.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    made = table(Path(sys.argv[1]))
    print(made)
    new = f"{before}{_BEGIN}{made}{_END}{after}"
    DOCUMENT.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
