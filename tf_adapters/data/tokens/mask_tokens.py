"""Texts that hold the mask token themselves, to be asked what stands there."""

import re

import tensorflow as tf

from tf_adapters.data.encoded import IGNORED

_SPACES = r"[\t-\r\x{85}\p{Z}]+"


def tokenize_with_masks(tokenize_texts, texts, mask, mask_id):
    """Returns ragged tokens of texts, with `mask_id` for each mask in them.

    What stands between masks is tokenised as a text of its own. The space
    before a mask belongs to it, as RoBERTa's and XLM-R's own tokenizers have
    it; to WordPiece spaces are nothing.

    Args:
        tokenize_texts: Function from strings `(texts,)` to ragged tokens.
        texts: String tensor `(batch,)`, or list of strings.
        mask: The mask token as texts have it.
        mask_id: Its id.
    """
    spaced = _SPACES + re.escape(mask)
    parts = tf.strings.split(
        tf.strings.regex_replace(texts, spaced, mask), mask
    )
    tokens = tokenize_texts(parts.flat_values)
    masks = tf.fill([tokens.nrows(), 1], tf.cast(mask_id, tokens.dtype))
    tokens = tf.concat([masks, tokens], axis=1)
    # There is one part more than there are masks.
    return parts.with_values(tokens).merge_dims(1, 2)[:, 1:]


def find_mask_tokens(features, mask_id, max_masks):
    """Returns features with `masked_positions`, `(rows, max_masks)` int32.

    These are the places of each row's masks, in order, and `IGNORED` where it
    has fewer.

    Args:
        features: Dict with `token_ids`.
        mask_id: Id of the mask token.
        max_masks: Largest number of masks of a row, an integer or a scalar
            tensor.
    """
    is_mask = features["token_ids"] == mask_id
    order = tf.argsort(tf.where(is_mask, 0, 1), axis=1, stable=True)[
        :, :max_masks
    ]
    there = tf.gather(is_mask, order, batch_dims=1)
    return {**features, "masked_positions": tf.where(there, order, IGNORED)}


def count_mask_tokens(features, mask_id):
    """Returns the largest number of masks of a row, a scalar."""
    is_mask = tf.cast(features["token_ids"] == mask_id, tf.int32)
    # No row at all has none, too.
    return tf.reduce_max(tf.pad(tf.reduce_sum(is_mask, axis=1), [[0, 1]]))
