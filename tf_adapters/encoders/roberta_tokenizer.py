"""RoBERTa's byte-pair tokenizer, which runs in a graph."""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import tensorflow as tf

from tf_adapters.encoders.byte_pairs import byte_pair_ids


@keras.saving.register_keras_serializable("tf_adapters")
class RobertaTokenizer(keras_hub.models.RobertaTokenizer):
    """Turns texts into token ids, without special tokens.

    Args:
        vocabulary: Dict from token to id, or the path of `vocab.json`.
        merges: List of byte-pair merges, or the path of `merges.txt`.
        **kwargs: See `keras_hub.models.RobertaTokenizer`.

    Call arguments:
        inputs: List of strings, a string, or string tensor of shape `(batch,)`.

    Returns:
        List of lists of integers, or the list of a string; in a graph, a
        `tf.RaggedTensor` with a row for each text.
    """

    def __init__(
        self,
        vocabulary: dict[str, int] | str | None = None,
        merges: list[str] | str | None = None,
        **kwargs: Any,
    ) -> None:
        # KerasHub's Python code splits numbers as in Llama 3, not in RoBERTa.
        kwargs["_allow_python_workflow"] = False
        # "</s>" in a text is treated as plain text; see word_piece.py.
        kwargs["unsplittable_tokens"] = []
        # A graph also for eager calls, which would be slow.
        self._in_graph = tf.function(
            lambda texts: byte_pair_ids(self, texts), reduce_retracing=True
        )
        super().__init__(vocabulary=vocabulary, merges=merges, **kwargs)

    def tokenize(
        self, inputs: str | Sequence[str] | tf.Tensor
    ) -> list[int] | list[list[int]] | tf.RaggedTensor:
        """Splits texts as GPT-2 does, and returns their token ids."""
        texts = tf.convert_to_tensor(inputs)
        tokens = self._in_graph(tf.reshape(texts, [-1]))
        if not tf.executing_eagerly():
            return tokens
        rows = tokens.to_list()
        return rows if texts.shape.rank else rows[0]
