"""Generates small data sets for the demo and the tests.

The grammars in `tf_adapters.data.grammars` give three tasks, in well under a
second and identically on every machine:

- `sentiment`: is the verdict on a work of art positive? Negation and
  concession decide, so the same words occur under both labels.
- `entailment`: does the hypothesis follow from the premise, contradict it, or
  neither? Who did what to whom, quantifiers, "and" and "or", comparisons.
- `acceptability`: is the sentence grammatical? Agreement, auxiliaries, word
  order, reflexives.

The splits differ, so that scores are meaningful:

- The nouns, verbs, adjectives and names of training, validation and test are
  disjoint.
- In validation and test, every second group follows a sentence pattern that
  does not occur in training. The others follow a training pattern.
- A group has one row of each label, made from one pattern and one draw of
  words. The labels are exactly balanced, and words alone decide little.
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

# Multiples of two and of three, as a group has a row of each label.
SPLIT_SIZES = {"train": 2400, "validation": 480, "test": 480}

_SEED = 20190202


def generate(name, split):
    """Generates the rows of a split of a built-in data set.

    Args:
        name: String. `"sentiment"`, `"entailment"` or `"acceptability"`.
        split: String. `"train"`, `"validation"` or `"test"`.

    Returns:
        List of dicts with a string for each text field, and the integer
        `label`. Every call returns the same rows in the same order.

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
    """Draws groups from each pattern in turn until the split is full."""
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
