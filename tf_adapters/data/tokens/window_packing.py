"""Packs windows of long texts into a model's inputs, eagerly or in a graph."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.data.tokens.windows import Windows


def pack_windows(
    packer: TextPacker, texts: Any, windows: Windows
) -> dict[str, Any]:
    """Cuts texts into windows and returns the model's inputs.

    The windows are the same as from `tokenize_windows`.

    Args:
        packer: `TextPacker`.
        texts: List of strings, or string tensor of shape `(batch,)`.
        windows: `Windows`.

    Returns:
        Dict of int32 tensors `(batch, windows, length)`; see `TextPacker`.
        Windows without tokens are padding.
    """
    room = packer.max_length - 2
    tokens, counts = _cut(packer.tokenize(texts), windows, room)
    features = packer.pack_tokens(tokens)
    most = tf.reduce_max(tf.concat([counts, [1]], 0))
    return {
        name: tf.RaggedTensor.from_row_lengths(value, counts).to_tensor(
            packer.special_tokens.pad if name == "token_ids" else 0,
            shape=tf.stack([-1, most, tf.shape(value, tf.int64)[1]]),
        )
        for name, value in features.items()
    }


def _cut(tokens: Any, windows: Windows, room: int) -> tuple[Any, Any]:
    """Returns ragged tokens of all windows, and each text's window count.

    Args:
        tokens: Ragged tensor `(batch, tokens)`.
        windows: `Windows`.
        room: Number of a text's tokens that fit into a window.
    """
    step = windows.step(room)
    lengths = tokens.row_lengths()
    # The number of windows that all tokens need in addition to the first.
    further = -(-tf.maximum(lengths - room, 0) // step)
    counts = tf.minimum(1 + further, windows.count)
    starts = tf.ragged.range(counts) * step
    ends = tf.minimum(starts + room, tf.expand_dims(lengths, 1))
    first = tf.expand_dims(tokens.row_starts(), 1)
    indices = tf.ragged.range(
        (starts + first).flat_values, (ends + first).flat_values
    )
    return tf.gather(tokens.values, indices), counts
