"""ALBERT's SentencePiece tokenizer, with the text cleanup of ALBERT's code.

The tokenizer runs in a graph. Before it splits a text into pieces, it replaces
two kinds of quotes, removes accents and lowercases, as in
transformers/models/albert/tokenization_albert.py. KerasHub's class lacks these
steps.
"""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from tf_adapters.encoders.word_piece import lowercased


@keras.saving.register_keras_serializable("tf_adapters")
class AlbertTokenizer(keras_hub.models.AlbertTokenizer):
    """Turns texts into token ids, without special tokens.

    Args:
        proto: Path or bytes of a SentencePiece model.
        lowercase: Whether to lowercase texts. Defaults to `True`.
        keep_accents: Whether to keep accents. Defaults to `False`.
        **kwargs: See `keras_hub.models.AlbertTokenizer`.

    Call arguments:
        inputs: List of strings, or string tensor of shape `(batch,)`.

    Returns:
        List of lists of integers; in a graph, a `tf.RaggedTensor`.
    """

    second_segment = 1

    def __init__(
        self,
        proto: str | bytes | None = None,
        lowercase: bool = True,
        keep_accents: bool = False,
        **kwargs: Any,
    ) -> None:
        # Use the graph code for eager calls, too, so that ids are the same.
        kwargs["_allow_python_workflow"] = False
        super().__init__(proto=proto, **kwargs)
        self.lowercases = lowercase
        self.keeps_accents = keep_accents

    @property
    def separator_ids(self) -> list[int]:
        """Ids of the tokens between two texts."""
        return [self.end_token_id]

    def tokenize(
        self, inputs: Sequence[str] | tf.Tensor
    ) -> list[list[int]] | tf.RaggedTensor:
        """Cleans texts as ALBERT's code does, and returns their token ids."""
        return super().tokenize(self._clean(tf.convert_to_tensor(inputs)))

    def _clean(self, texts: tf.Tensor) -> tf.Tensor:
        texts = tf.strings.regex_replace(texts, "``|''", '"')
        if not self.keeps_accents:
            texts = tf_text.normalize_utf8(texts, "NFKD")
            texts = tf.strings.regex_replace(texts, r"\p{M}", "")
        return lowercased(texts) if self.lowercases else texts

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "lowercase": self.lowercases,
            "keep_accents": self.keeps_accents,
        }
