"""Data sets that the project writes itself, for the demo and the tests.

Three small tasks, generated from the grammars in `tf_adapters.data.grammars`
in well under a second and the same on every machine:

- `sentiment`: is the verdict on a work of art positive? Negation and
  concession decide, so the same words occur under both labels.
- `entailment`: does the hypothesis follow from the premise, contradict it, or
  neither? Who did what to whom, quantifiers, "and" and "or", comparisons.
- `acceptability`: is the sentence grammatical? Agreement, auxiliaries, word
  order, reflexives.

How the splits differ, so that a score on them means something:

- Every noun, verb, adjective and name of the validation and test split is
  absent from training, and the two share none with each other.
- Every second group of a validation or test split follows a sentence pattern
  that training never showed; the other half follows a training pattern.
- A group holds one row of each label, made from one pattern and one draw of
  words. So the labels are exactly balanced, and the words alone decide little.
"""

import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.data.grammars import acceptability
from tf_adapters.data.grammars import entailment
from tf_adapters.data.grammars import sentiment

GRAMMARS = {
    "sentiment": sentiment.GRAMMAR,
    "entailment": entailment.GRAMMAR,
    "acceptability": acceptability.GRAMMAR,
}

# Multiples of two and of three: one row of each label in every group.
SPLIT_SIZES = {"train": 2400, "validation": 480, "test": 480}

_SEED = 20190202


def generate(name, split):
    """Returns the rows of one split of a built-in data set.

    Args:
        name: String. `"sentiment"`, `"entailment"` or `"acceptability"`.
        split: String. `"train"`, `"validation"` or `"test"`.

    Returns:
        List of dicts: one string for each text field, and the integer `label`.
        Every call returns equal rows, in the same order.

    Raises:
        UserError: If there is no such data set or no such split.
    """
    check_known("built-in data set", name, GRAMMARS)
    check_known("built-in split", split, SPLIT_SIZES)
    seed = [_SEED, list(GRAMMARS).index(name), list(SPLIT_SIZES).index(split)]
    rng = np.random.default_rng(seed)
    rows = _draw_rows(rng, GRAMMARS[name], split)
    return [rows[i] for i in rng.permutation(len(rows))]


def _draw_rows(rng, grammar, split):
    """Draws groups, pattern after pattern, until the split is full."""
    rows, seen, num_groups = [], set(), 0
    while len(rows) < SPLIT_SIZES[split]:
        pattern = _pattern(grammar, split, num_groups)
        group = grammar.fill(pattern, grammar.draw_words(rng, split))
        if seen.isdisjoint(group):
            seen.update(group)
            rows += [grammar.row(label, t) for label, t in enumerate(group)]
            num_groups += 1
    return rows


def _pattern(grammar, split, index):
    """The training patterns in turn; outside training, every second is new."""
    if split == "train":
        patterns = grammar.patterns["train"]
        return patterns[index % len(patterns)]
    patterns = grammar.patterns["train" if index % 2 else split]
    return patterns[index // 2 % len(patterns)]
