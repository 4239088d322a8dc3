"""Which backend does what: the table in docs/backends.md, made by running it.

    python -m tests.models.backends_table    # runs and writes the table again

A backend that is not installed here keeps the column that it has.
"""

import importlib.util
import json
import os
from pathlib import Path
import re
import subprocess
import sys
import tempfile

import numpy as np

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "backends.md"
# Column: Keras's name of the backend, the module it needs, arguments of a run.
COLUMNS = {
    "TensorFlow": ("tensorflow", "tensorflow", ()),
    "TensorFlow, two replicas": ("tensorflow", "tensorflow", ("--mirrored",)),
    "JAX": ("jax", "jax", ()),
    "PyTorch": ("torch", "torch", ()),
}
ROWS = {
    "call": "call",
    "fit": "`fit`",
    "dropout": "`fit` with dropout",
    "evaluate": "`evaluate`",
    "predict": "`predict`",
    "leave_out": "`leave_out`, then `predict`",
    "merge": "`fold` and `unfold`",
    "save": "`save` to `.keras`",
    "load": "`keras.models.load_model`",
    "save_adapter": "`save_adapter`",
    "load_adapter": "`load_adapter`",
}
# What a method has nothing of.
NOT_APPLICABLE = ("none to leave out", "nothing to merge", "needs folders")


def is_installed(column):
    """Returns whether the backend of a column can be run here."""
    return importlib.util.find_spec(COLUMNS[column][1]) is not None


def run(column, methods=None):
    """Returns what `backend_run` found, and its arrays."""
    backend, _, arguments = COLUMNS[column]
    with tempfile.TemporaryDirectory() as folder:
        arrays = Path(folder) / "arrays.npz"
        command = [sys.executable, "-m", "tests.models.backend_run"]
        command += [f"--output={arrays}", *arguments]
        command += [f"--methods={','.join(methods)}"] if methods else []
        done = subprocess.run(
            command,
            cwd=ROOT,
            env={**os.environ, "KERAS_BACKEND": backend},
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        with np.load(arrays) as loaded:
            return json.loads(done.stdout.splitlines()[-1]), dict(loaded)


def cells(found):
    """Returns from feature to what the table says of it.

    Args:
        found: Dict from method to feature to "yes" or what happened.
    """
    return {feature: _cell(feature, found) for feature in ROWS}


def _cell(feature, found):
    answers = {
        name: features[feature]
        for name, features in found.items()
        if feature in features and features[feature] not in NOT_APPLICABLE
    }
    working = [name for name, answer in answers.items() if answer == "yes"]
    failing = [name for name in answers if name not in working]
    if feature == "dropout":
        return "yes" if working else "no"
    text = f"{len(working)} of {len(answers)}"
    return text + (f", not {', '.join(failing)}" if failing else "")


def read_table():
    """Returns from column to feature to the text in the document's table.

    It is the first of the document's tables.
    """
    text = DOCUMENT.read_text(encoding="utf-8")
    table = re.search(r"(^\|.*\n)+", text, flags=re.M)
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in table[0].splitlines()
        if not line.startswith("|-")
    ]
    header, *rows = rows
    by_title = {title: feature for feature, title in ROWS.items()}
    return {
        column: {by_title[row[0]]: row[i] for row in rows}
        for i, column in enumerate(header)
        if i
    }


def write_table(columns):
    """Puts columns into the document.

    Args:
        columns: Dict from column to feature to text.
    """
    lines = [
        f"| | {' | '.join(COLUMNS)} |",
        f"|---|{'---|' * len(COLUMNS)}",
        *(
            f"| {title} | "
            + " | ".join(columns[column][feature] for column in COLUMNS)
            + " |"
            for feature, title in ROWS.items()
        ),
    ]
    text = DOCUMENT.read_text(encoding="utf-8")
    table = "\n".join(lines) + "\n"
    DOCUMENT.write_text(
        re.sub(r"(^\|.*\n)+", lambda _: table, text, count=1, flags=re.M),
        encoding="utf-8",
    )


def main():
    columns = read_table()
    for column in COLUMNS:
        if is_installed(column):
            found, _ = run(column)
            columns[column] = cells(found)
            print(column, json.dumps(found, indent=1))
    write_table(columns)


if __name__ == "__main__":
    main()
