"""Examples in the forms that the scripts in `peers` read."""

import json

import numpy as np


def write(rows, text_fields, path):
    """Writes rows as JSONL with `text_a`, `text_b` for pairs, and `label`."""
    with open(path, "w", encoding="utf-8") as file:
        for row in rows:
            keys = ("text_a", "text_b")[: len(text_fields)]
            texts = dict(zip(keys, map(row.get, text_fields), strict=True))
            file.write(json.dumps({**texts, "label": row["label"]}) + "\n")


def write_encoded(encoded, path):
    """Writes what a head made of rows as arrays, sequence after sequence.

    `lengths` has the tokens of each, `choices` the sequences of each example
    where that is not one; targets of tokens are as long as the tokens.

    Args:
        encoded: `data.examples.Examples` of an encoder with segments.
        path: npz file to write.
    """
    ids, segments = encoded.token_ids, encoded.segment_ids
    if segments is None:
        raise ValueError(
            "Tags, spans and choices are compared on encoders with segments, "
            "BERT's and its like."
        )
    arrays = {}
    if isinstance(ids[0], list):
        arrays["choices"] = np.array([len(row) for row in ids])
        ids, segments = (
            [one for row in rows for one in row] for rows in (ids, segments)
        )
    targets = encoded.targets
    if isinstance(targets, list):
        targets = np.concatenate(targets)
    np.savez(
        path,
        **arrays,
        lengths=np.array([len(row) for row in ids]),
        token_ids=np.concatenate(ids),
        segment_ids=np.concatenate(segments),
        targets=targets,
    )


def read_outputs(path, encoded):
    """Returns a model's outputs for each example that `write_encoded` wrote."""
    sizes = [len(example) for example in encoded.token_ids]
    return np.split(np.load(path, allow_pickle=False), np.cumsum(sizes)[:-1])
