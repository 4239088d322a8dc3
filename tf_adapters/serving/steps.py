"""Splits examples into steps of similar length, and pads them."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence

import numpy as np

from tf_adapters.data.examples import Examples

# Texts up to this number of tokens may be computed together, whatever their
# lengths: the time that a step takes anyway is more than padding costs.
_SHORT = 32


def plan_steps(lengths: Sequence[int], max_tokens: int) -> Iterator[list[int]]:
    """Yields the indices of the examples that are computed together.

    The shortest come first. In a step, no example is more than twice as long as
    another, unless both are short, so that less than half of the tokens are
    padding.

    Args:
        lengths: Number of tokens of each example.
        max_tokens: Maximum number of tokens of a step, padding included. A
            single example may be longer.
    """
    step: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        longest = lengths[index]
        if step and (
            longest > max(_SHORT, 2 * lengths[step[0]])
            or longest * (len(step) + 1) > max_tokens
        ):
            yield step
            step = []
        step.append(index)
    if step:
        yield step


def padded_features(
    examples: Iterable[tuple[Examples, int]],
) -> dict[str, np.ndarray]:
    """Makes a batch of examples that are padded to the longest.

    Args:
        examples: For each example, the `Examples` that have it and its index
            there.

    Returns:
        Dict of int32 arrays `(batch, tokens)`: `token_ids`, `padding_mask`, and
        `segment_ids` if the encoder takes segments.
    """
    examples = list(examples)
    pad_id = examples[0][0].pad_id
    ids = [np.asarray(of.token_ids[i]) for of, i in examples]
    features = {
        "token_ids": _padded(ids, pad_id),
        "padding_mask": _padded([np.ones_like(row) for row in ids], 0),
    }
    segments = [of.segment_ids[i] for of, i in examples if of.segment_ids]
    if segments:
        features["segment_ids"] = _padded(segments, 0)
    return features


def _padded(rows: Sequence[np.ndarray], value: int) -> np.ndarray:
    array = np.full((len(rows), max(map(len, rows))), value, "int32")
    for place, row in enumerate(rows):
        array[place, : len(row)] = row
    return array
