"""Tokenizes texts that contain mask tokens for a model to fill in."""

from __future__ import annotations

from collections.abc import Callable
import re
from typing import Any

import tensorflow as tf

from tf_adapters.data.examples import IGNORED

_SPACES = r"[\t-\r\x{85}\p{Z}]+"


def tokenize_with_masks(
    tokenize_texts: Callable[..., Any], texts: str, mask: Any, mask_id: int
) -> Any:
    """Returns ragged token ids of texts, with `mask_id` for each mask token.

    Each part between masks is tokenized as a separate text. White space before
    a mask is dropped, as in the original tokenizers of RoBERTa and XLM-R.
    WordPiece ignores white space anyway.

    Args:
        tokenize_texts: Function from strings `(texts,)` to ragged tokens.
        texts: String tensor `(batch,)`, or list of strings.
        mask: The mask token as it is written in texts.
        mask_id: Id of the mask token.
    """
    spaced = _SPACES + re.escape(mask)
    parts = tf.strings.split(
        tf.strings.regex_replace(texts, spaced, mask), mask
    )
    tokens = tokenize_texts(parts.flat_values)
    masks = tf.fill([tokens.nrows(), 1], tf.cast(mask_id, tokens.dtype))
    tokens = tf.concat([masks, tokens], axis=1)
    # A mask was added before each part of a text. A text has one more part than
    # masks, so drop its first mask.
    return parts.with_values(tokens).merge_dims(1, 2)[:, 1:]


def find_mask_tokens(
    features: dict[str, Any], mask_id: int, max_masks: Any
) -> dict[str, Any]:
    """Adds `masked_positions`, int32 `(rows, max_masks)`, to features.

    These are the positions of each row's mask tokens, in order, padded with
    `IGNORED`.

    Args:
        features: Dict with `token_ids`.
        mask_id: Id of the mask token.
        max_masks: Largest number of mask tokens in a row, an integer or a
            scalar tensor.
    """
    is_mask = features["token_ids"] == mask_id
    order = tf.argsort(tf.where(is_mask, 0, 1), axis=1, stable=True)[
        :, :max_masks
    ]
    there = tf.gather(is_mask, order, batch_dims=1)
    return {**features, "masked_positions": tf.where(there, order, IGNORED)}


def count_mask_tokens(features: dict[str, tf.Tensor], mask_id: int) -> Any:
    """Returns the largest number of mask tokens in a row, a scalar tensor."""
    is_mask = tf.cast(features["token_ids"] == mask_id, tf.int32)
    # The padding makes the result 0 for a batch without rows.
    return tf.reduce_max(tf.pad(tf.reduce_sum(is_mask, axis=1), [[0, 1]]))
