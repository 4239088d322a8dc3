"""Splits texts into byte pairs in the graph, exactly as GPT-2 does.

KerasHub's own code joins the line ends of a blank line to one word, does not
know all of Unicode's spaces, and loses the digit "६", with which it marks where
to split. Here, texts are split by GPT-2's pattern. KerasHub's class then merges
the bytes of each word.
"""

from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

_SPACE = (
    r"\t-\r \x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}"
    r"\x{205f}\x{3000}"
)
# Marks where to split. Texts do not have this code point, which Unicode keeps
# free for such uses.
_MARK = "\U0010ffff"
_WORD = (
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+|"
    rf" ?[^{_SPACE}\p{{L}}\p{{N}}{_MARK}]+|[{_SPACE}]+"
)


def byte_pair_ids(tokenizer: Any, texts: tf.Tensor) -> tf.RaggedTensor:
    """Returns the token ids of texts, in a graph.

    Args:
        tokenizer: `keras_hub.tokenizers.BytePairTokenizer` with a vocabulary.
        texts: String tensor of shape `(texts,)`.
    """
    if tokenizer.add_prefix_space:
        texts = tf.strings.join([" ", texts])
    words = _split(texts)
    flat = words.flat_values
    known = tokenizer.cache.lookup(flat)

    def merged() -> tf.Tensor:
        new, _ = tf.unique(tf.boolean_mask(flat, known == ""))
        tokenizer._bpe_merge_and_update_cache_tf(new)
        return tokenizer.cache.lookup(flat)

    pieces = tf.cond(tf.reduce_any(known == ""), merged, lambda: known)
    ids = tokenizer.token_to_id_map.lookup(tf.strings.split(pieces, " "))
    return words.with_flat_values(ids).merge_dims(1, 2)


def _split(texts: tf.Tensor) -> tf.RaggedTensor:
    """Splits texts into words, which begin with the space before them."""
    # The last of several spaces before a word is split off. GPT-2's pattern
    # looks ahead for this, which TensorFlow's cannot.
    texts = tf.strings.regex_replace(
        texts,
        f"([{_SPACE}])([{_SPACE}])([^{_SPACE}])",
        rf"\1{_MARK}\2\3",
    )
    return tf_text.regex_split(texts, f"{_WORD}|{_MARK}", _WORD)
