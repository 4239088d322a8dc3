"""Rows, tokens and batches for the PyTorch side of the comparisons."""

import json

import numpy as np
import torch

MEGABATCH = 50  # Batches in one stretch of rows that is sorted by length.


def read_rows(path, limit=None):
    """Reads {"text_a", "text_b"?, "label"?} rows, one JSON object a line."""
    # Not `splitlines`: texts may contain other Unicode line separators.
    with open(path, encoding="utf-8", newline="\n") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    if not rows or "text_a" not in rows[0]:
        raise ValueError(
            f"`{path}` must hold rows with `text_a`. Received: {rows[:1]}"
        )
    return rows[:limit]


def tokenize(rows, tokenizer, max_length):
    """Returns one example a row: its token ids, segment ids and label."""
    texts_a = [row["text_a"] for row in rows]
    texts_b = [row["text_b"] for row in rows] if "text_b" in rows[0] else None
    encoded = tokenizer(
        texts_a,
        texts_b,
        truncation=True,
        max_length=max_length,
        padding=False,
        return_token_type_ids=True,
    )
    return [
        {"ids": ids, "segments": segments, "label": row.get("label", 0)}
        for ids, segments, row in zip(
            encoded["input_ids"], encoded["token_type_ids"], rows, strict=True
        )
    ]


def random_batches(lengths, batch_size, rng):
    """Returns the indices of each batch of one epoch, in random order."""
    return _cut(rng.permutation(len(lengths)), batch_size)


def grouped_batches(lengths, batch_size, rng):
    """Returns random batches of rows of similar length.

    The rows are shuffled, cut into stretches of 50 batches, sorted by length
    within each, cut into batches, and the batches shuffled.
    """
    lengths = np.asarray(lengths)
    order = rng.permutation(len(lengths))
    stretches = [
        stretch[np.argsort(lengths[stretch], kind="stable")]
        for stretch in _cut(order, MEGABATCH * batch_size)
    ]
    batches = [b for stretch in stretches for b in _cut(stretch, batch_size)]
    return [batches[i] for i in rng.permutation(len(batches))]


def sorted_batches(lengths, batch_size):
    """Returns batches in the order of length, for evaluation."""
    return _cut(np.argsort(lengths, kind="stable"), batch_size)


def _cut(order, size):
    return [order[i : i + size] for i in range(0, len(order), size)]


def collate(examples, pad_token_id):
    """Returns tensors padded to the longest example, and the labels."""
    shape = (len(examples), max(len(e["ids"]) for e in examples))
    ids = np.full(shape, pad_token_id, np.int64)
    segments = np.zeros(shape, np.int64)
    mask = np.zeros(shape, np.int64)
    for i, example in enumerate(examples):
        length = len(example["ids"])
        ids[i, :length] = example["ids"]
        segments[i, :length] = example["segments"]
        mask[i, :length] = 1
    inputs = {
        "input_ids": torch.from_numpy(ids),
        "attention_mask": torch.from_numpy(mask),
        "token_type_ids": torch.from_numpy(segments),
    }
    return inputs, torch.tensor([e["label"] for e in examples])
