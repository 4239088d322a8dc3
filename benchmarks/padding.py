"""How much of a batch is padding, which is all that packing texts could save.

    python benchmarks/padding.py --data_dir=<folder>

Reads the training texts of several tasks with the vocabulary of `minilm`, at
most 128 tokens each, and plans the batches of one epoch as training does:

- random, grouped: padded to the longest text of a batch; grouped is the default
  on processors;
- four lengths: all batches padded to 32, 64, 96 or 128 tokens, as where XLA
  compiles a program for each length;
- best four: the same with the four multiples of 8 that suit the task best;
- packed: several texts in rows of 128 tokens, each row filled with the longest
  text that still fits (best fit decreasing).

A number is the share of padding in all positions of the epoch. Training time
that is proportional to the positions falls by `(padding - packed) / (1 -
packed)` at most.
"""

import argparse
import bisect
import itertools
import json
from pathlib import Path
import sys

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import tokenizers

from tf_adapters.data.batches import batch_plan
from tf_adapters.encoders import minilm

MAX_LENGTH, BATCH_SIZE = 128, 32
# Text fields of the tasks, from tweets to reviews.
TASKS = {
    "sms_spam": ("sentence",),
    "cf_airline": ("sentence",),
    "sst2": ("sentence",),
    "cola": ("sentence",),
    "mrpc": ("sentence1", "sentence2"),
    "rte": ("sentence1", "sentence2"),
    "mnli": ("sentence1", "sentence2"),
    "qnli": ("question", "sentence"),
    "imdb": ("sentence",),
}


def read_lengths(path, fields, tokenizer):
    """Returns the number of tokens of each row's text or pair of texts."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    texts = [tuple(row[field] for field in fields) for row in rows]
    if len(fields) == 1:
        texts = [text for (text,) in texts]
    return np.array([len(e.ids) for e in tokenizer.encode_batch(texts)])


def packed_padding(lengths, row=MAX_LENGTH):
    """Returns the share of padding if texts are packed into rows.

    Args:
        lengths: Integer array, the tokens of each text, at most `row`.
        row: Tokens of a row.
    """
    free = []  # Free positions of each row that has some, ascending.
    rows = 0
    for length in sorted(lengths.tolist(), reverse=True):
        place = bisect.bisect_left(free, length)
        if place == len(free):
            rows += 1
            left = row - length
        else:
            left = free.pop(place) - length
        bisect.insort(free, left)
    return 1 - lengths.sum() / (rows * row)


def best_four(plan):
    """Returns the four multiples of 8 that pad the batches of a plan least."""
    longest = np.array([batch.length for batch in plan])
    steps = range(8, MAX_LENGTH + 8, 8)

    def positions(few):
        return np.take(few, np.searchsorted(few, longest)).sum()

    every = itertools.combinations(steps, 4)
    return min(
        (few for few in every if few[-1] >= longest.max()), key=positions
    )


def paddings(lengths):
    """Returns the share of padding of each way to make batches."""
    shares = {}
    for batching in ("random", "grouped"):
        plan = batch_plan.plan_training(lengths, BATCH_SIZE, 0, 0, batching)
        shares[batching] = batch_plan.padding_fraction(plan, lengths)
    shapes = {
        "four lengths": batch_plan.few_lengths(MAX_LENGTH),
        "best four": best_four(plan),
    }
    for name, few in shapes.items():
        padded = batch_plan.in_fixed_shapes(plan, BATCH_SIZE, few)
        shares[name] = batch_plan.padding_fraction(padded, lengths)
    shares["packed"] = packed_padding(lengths)
    return shares


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", type=Path, required=True)
    arguments = parser.parse_args()
    vocabulary = Path(minilm.minilm_folder()) / "vocab.txt"
    tokenizer = tokenizers.BertWordPieceTokenizer(str(vocabulary))
    tokenizer.enable_truncation(MAX_LENGTH)
    print(
        "| task | texts | tokens, mean | random | grouped | four lengths "
        "| best four | packed |\n" + "|---" * 8 + "|"
    )
    for task, fields in TASKS.items():
        path = arguments.data_dir / task / "train.jsonl"
        lengths = read_lengths(path, fields, tokenizer)
        cells = [task, f"{len(lengths):,}", f"{lengths.mean():.0f}"]
        cells += [f"{100 * one:.1f}%" for one in paddings(lengths).values()]
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
