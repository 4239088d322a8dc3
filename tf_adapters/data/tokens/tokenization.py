"""Runs any encoder's tokenizer, eagerly or in a graph."""

from typing import Any

import keras_hub
import numpy as np
import tensorflow as tf

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.lasting_vocabulary import keep_vocabulary


class Tokenization:
    """Turns texts into ragged int32 tokens, without special tokens.

    Tokens are not truncated.

    Args:
        tokenizer: Tokenizer from `load_encoder`.

    Call arguments:
        texts: String tensor of shape `(texts,)`.
    """

    def __init__(self, tokenizer: Any) -> None:
        keep_vocabulary(tokenizer)
        self.tokenizer = tokenizer
        # Eagerly, KerasHub's tokenizers are slower or give other results.
        self._in_graph = None
        self._unknown = None
        if isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
            known: Any = tokenizer.vocabulary
            self._unknown = known.get("<unk>", tokenizer.pad_token_id)
        if isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
            self._in_graph = tf.function(
                lambda texts: tokenizer(texts),
                input_signature=[tf.TensorSpec([None], tf.string)],
            )

    def __call__(self, texts: Any) -> Any:
        if not getattr(self.tokenizer, "add_prefix_space", False):
            return self._tokens(texts)
        # KerasHub adds a space before every text. The original tokenizer does
        # not, if the text begins with a space or is empty.
        tokens = self._tokens(tf.strings.regex_replace(texts, "^ ", ""))
        lengths = tf.where(texts == "", 0, tokens.row_lengths())
        is_kept = tf.repeat(texts != "", tokens.row_lengths())
        return tf.RaggedTensor.from_row_lengths(
            tf.boolean_mask(tokens.flat_values, is_kept), lengths
        )

    def _tokens(self, texts: Any) -> Any:
        if self._in_graph is None:
            return self._python_tokens(texts)
        run = self._in_graph if tf.executing_eagerly() else self.tokenizer
        tokens = tf.cast(run(texts), tf.int32)
        if self._unknown is None:
            return tokens
        # Bytes that are not in the vocabulary become -1, which would select
        # the last row of an embedding.
        ids = tokens.flat_values
        return tokens.with_flat_values(tf.where(ids < 0, self._unknown, ids))

    def _python_tokens(self, texts: Any) -> Any:
        if not tf.executing_eagerly():
            raise UserError(
                "This tokenizer runs in Python only, so texts cannot be packed "
                "in a graph. Expected: a KerasHub tokenizer; "
                "`tokenizer.in_graph()` gives one where its vocabulary allows."
            )
        strings = [text.decode() for text in texts.numpy()]
        # Tokenizers of transformers do not take an empty list.
        rows = self.tokenizer(strings) if strings else []
        return tf.RaggedTensor.from_row_lengths(
            np.concatenate([[], *rows]).astype(np.int32),
            [len(row) for row in rows],
        )
