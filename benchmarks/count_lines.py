"""How many lines and statements the library has, without the wing and in it.

    python benchmarks/count_lines.py
    python benchmarks/count_lines.py --checkout=<folder> \
        --wing=studies,analysis,baselines

The second line counts a checkout from before the wing had a folder of its own.
Statements are what Python's parser finds, docstrings left out.
"""

import argparse
import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]


def count(package, wing):
    """Returns files, lines and statements of the core and of the wing.

    Args:
        package: Path of `tf_adapters`.
        wing: Names of folders in it.

    Returns:
        Dict from `"core"` and `"wing"` to a list of three integers.
    """
    totals = {"core": [0, 0, 0], "wing": [0, 0, 0]}
    for path in package.rglob("*.py"):
        is_wing = path.relative_to(package).parts[0] in wing
        text = path.read_text(encoding="utf-8")
        numbers = (1, text.count("\n"), _statements(text))
        total = totals["wing" if is_wing else "core"]
        total[:] = [a + b for a, b in zip(total, numbers, strict=True)]
    return totals


def _statements(text):
    return sum(
        isinstance(node, ast.stmt) and not _is_docstring(node)
        for node in ast.walk(ast.parse(text))
    )


def _is_docstring(node):
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def main():
    """Prints the table."""
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
    )
    parser.add_argument("--checkout", type=Path, default=ROOT)
    parser.add_argument(
        "--wing",
        default="papers",
        help="folders of tf_adapters, with commas between; default: papers",
    )
    options = parser.parse_args()
    package = options.checkout / "tf_adapters"
    found = count(package, options.wing.split(","))
    print(f"{'':6}{'files':>8}{'lines':>8}{'statements':>12}")
    for name, (files, lines, statements) in found.items():
        print(f"{name:6}{files:8,}{lines:8,}{statements:12,}")


if __name__ == "__main__":
    main()
