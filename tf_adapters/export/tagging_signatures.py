"""Signatures of a tagging model.

`serving_default` takes a string tensor `(batch,)` named `text`: sentences with
spaces between their words. The answer has `words` and `tags` (string, `(batch,
words)`, padded with ""), `tag_id` (int32, padded with -1) and `probabilities`
(float32, `(batch, words, classes)`). Words beyond the maximum length have the
tag "" and the id -1. (Without a SavedModel, prediction splits a long sentence
into several inputs, so that each word has a tag.)

`token_ids` returns `tag_id` and `probabilities` for each token.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters.data.tokens.words import unknown_id
from tf_adapters.data.tokens.words import word_prefix
from tf_adapters.export import signature_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.heads.head import Head
    from tf_adapters.models.adapter_model import AdapterModel


def text_function(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tf.types.experimental.ConcreteFunction:
    """Returns a traced function from sentences to the tags of their words."""

    def from_texts(text: Tensor) -> dict[str, Tensor]:
        words = tf.strings.split(text)
        tokens, firsts = _tokenize(packer, words)
        outputs = model(packer.pack_tokens(tokens), training=False)
        return _of_words(model.head, outputs, words, firsts)

    return signature_inputs.text_function(from_texts, ["text"])


def _tokenize(
    packer: TextPacker, words: tf.RaggedTensor
) -> tuple[tf.RaggedTensor, tf.RaggedTensor]:
    """Tokenizes words in a graph, as `Tagging.encode` does.

    Args:
        packer: Packer that tokenizes in a graph.
        words: Ragged strings `(batch, words)`.

    Returns:
        Ragged integers: tokens `(batch, tokens)`, and the position of each
        word's first token `(batch, words)`. Positions count the start token.
    """
    prefix = word_prefix(packer.tokenizer)
    tokens = packer.tokenize(tf.strings.join([prefix, words.flat_values]))
    is_empty = tf.cast(tokens.row_lengths() == 0, tf.int64)
    unknown = tf.fill([tf.reduce_sum(is_empty)], unknown_id(packer.tokenizer))
    tokens = tf.concat(
        [tokens, tf.RaggedTensor.from_row_lengths(unknown, is_empty)], axis=1
    )
    ends = tf.cumsum(tokens.row_lengths())
    starts = ends - tokens.row_lengths()
    of_sentence = words.with_values(tokens).merge_dims(1, 2)
    before = tf.gather(of_sentence.row_splits, words.value_rowids())
    return of_sentence, words.with_values(1 + starts - before)


def _of_words(
    head: Head, outputs: Tensor, words: tf.RaggedTensor, firsts: tf.RaggedTensor
) -> dict[str, Tensor]:
    num_tokens = tf.shape(outputs)[1]
    # The last position of the input is reserved for the end token.
    indices = tf.cast(firsts.to_tensor(-1), tf.int32)
    has_tag = (indices > 0) & (indices < num_tokens - 1)
    scores = tf.gather(outputs, tf.where(has_tag, indices, 0), batch_dims=1)
    tag_ids = tf.argmax(scores, axis=-1, output_type=tf.int32)
    return {
        "words": words.to_tensor(""),
        "tags": tf.where(
            has_tag, tf.gather(tf.constant(head.labels), tag_ids), ""
        ),
        "tag_id": tf.where(has_tag, tag_ids, -1),
        "probabilities": tf.nn.softmax(scores)
        * tf.cast(has_tag, tf.float32)[..., tf.newaxis],
    }


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns a traced function from token ids to the tag of each token."""

    def answer(outputs: Tensor) -> dict[str, Tensor]:
        return {
            "tag_id": tf.argmax(outputs, axis=-1, output_type=tf.int32),
            "probabilities": tf.nn.softmax(outputs),
        }

    return signature_inputs.token_function(model, answer)


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns two batches for warm-up: one text, and three texts.

    A batch is a dict from input name to value. Of the three texts, one is
    empty, one is short and one is truncated.
    """
    texts = ["", "A short text .", packer.too_long("A longer text , cut . ")]
    return [{**packer(batch), "text": batch} for batch in (texts[1:2], texts)]
