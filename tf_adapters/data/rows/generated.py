"""Reads small generated data sets for the demo and the tests.

The data sets are part of the package and the same on every machine:

- `sentiment`: is the verdict on a work of art positive? Negation and
  concession decide, so the same words occur under both labels.
- `entailment`: does the hypothesis follow from the premise, contradict it, or
  neither? This depends on who did what to whom, quantifiers, "and" and "or",
  and comparisons.
- `acceptability`: is the sentence grammatical? This depends on agreement,
  auxiliaries, word order and reflexives.

Labels are balanced. Words and half of the sentence patterns differ between
training, validation and test. The repository's `tests/grammars` makes the rows.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from tf_adapters.common.checks import check_known
from tf_adapters.data.rows.table import Table

NAMES = ("sentiment", "entailment", "acceptability")
SPLITS = ("train", "validation", "test")


def read_rows(name: str, split: str) -> list[Any]:
    """Returns the rows of a split of a built-in data set.

    Args:
        name: String. `"sentiment"`, `"entailment"` or `"acceptability"`.
        split: String. `"train"`, `"validation"` or `"test"`.

    Returns:
        List of dicts with a string for each text field, and the integer
        `label`.

    Raises:
        UserError: If there is no such data set or no such split.
    """
    check_known("built-in data set", name, NAMES)
    check_known("built-in split", split, SPLITS)
    with gzip.open(path_of(name), "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row for row in rows if row.pop("split") == split]


def read_table(name: str, split: str) -> Table:
    """Returns the rows of `read_rows` as a `Table`."""
    rows = read_rows(name, split)
    return Table(f"builtin:{name}, split {split}", list(enumerate(rows, 1)))


def path_of(name: str) -> Path:
    """Returns the path of the file with a built-in data set."""
    return Path(__file__).parent / "generated_rows" / f"{name}.jsonl.gz"
