"""Makes the rows of the built-in tasks from grammars; writes them with `main`.

    python -m tests.grammars.make_rows

The package has the written files only: `tf_adapters.data.rows.generated` reads
them. The same rows are made on every machine, in well under a second.

The splits differ, so that scores are meaningful:

- The nouns, verbs, adjectives and names of training, validation and test are
  disjoint.
- In validation and test, every second group follows a sentence pattern that
  does not occur in training. The others follow a training pattern.
- A group has one row of each label, made from one pattern and one draw of
  words. The labels are exactly balanced, and words alone decide little.
"""

import gzip
import json

import numpy as np

from tests.grammars import acceptability
from tests.grammars import entailment
from tests.grammars import sentiment
from tf_adapters.data.rows import generated

GRAMMARS = {
    "sentiment": sentiment.GRAMMAR,
    "entailment": entailment.GRAMMAR,
    "acceptability": acceptability.GRAMMAR,
}

# Multiples of two and of three, as a group has a row of each label.
SPLIT_SIZES = {"train": 2400, "validation": 480, "test": 480}

_SEED = 20190202


def make_rows(name, split):
    """Returns the rows of a split, with the integer `label` of each."""
    seed = [_SEED, list(GRAMMARS).index(name), list(SPLIT_SIZES).index(split)]
    rng = np.random.default_rng(seed)
    rows = _draw_rows(rng, GRAMMARS[name], split)
    return [rows[i] for i in rng.permutation(len(rows))]


def _draw_rows(rng, grammar, split):
    """Draws groups from each pattern in turn until the split is full."""
    rows, seen, num_groups = [], set(), 0
    while len(rows) < SPLIT_SIZES[split]:
        pattern = pattern_of(grammar, split, num_groups)
        group = grammar.fill(pattern, grammar.draw_words(rng, split))
        if seen.isdisjoint(group):
            seen.update(group)
            rows += [grammar.row(label, t) for label, t in enumerate(group)]
            num_groups += 1
    return rows


def pattern_of(grammar, split, index):
    """Returns a group's pattern; outside training, every second is a new one.

    Args:
        grammar: `Grammar`.
        split: `"train"`, `"validation"` or `"test"`.
        index: Index of the group.
    """
    if split == "train":
        patterns = grammar.patterns["train"]
        return patterns[index % len(patterns)]
    patterns = grammar.patterns["train" if index % 2 else split]
    return patterns[index // 2 % len(patterns)]


def lines_of(name):
    """Returns the JSON lines of a data set, with the `split` of each row."""
    return "".join(
        json.dumps({"split": split, **row}, separators=(",", ":")) + "\n"
        for split in SPLIT_SIZES
        for row in make_rows(name, split)
    )


def main():
    """Writes a file for each data set."""
    for name in GRAMMARS:
        # A fixed time, so that equal rows give equal bytes.
        content = gzip.compress(lines_of(name).encode(), 9, mtime=0)
        generated.path_of(name).write_bytes(content)


if __name__ == "__main__":
    main()
