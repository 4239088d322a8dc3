"""ModernBERT's byte-pair tokenizer, which runs in a graph.

In addition to byte pairs, the vocabulary has added tokens, such as runs of
spaces. Added tokens are found in a text before it is split into words.
"""

from collections.abc import Iterable
from collections.abc import Sequence
import re
from typing import Any

import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

from tf_adapters.encoders.byte_pairs import byte_pair_ids
from tf_adapters.encoders.modernbert import ModernBertBackbone


@keras.saving.register_keras_serializable("tf_adapters")
class ModernBertTokenizer(keras_hub.tokenizers.BytePairTokenizer):
    """Turns texts into token ids, without special tokens.

    Two texts are packed as `[CLS] a [SEP] b [SEP]`.

    Args:
        vocabulary: Dict from token to id, added tokens included.
        merges: List of byte-pair merges.
        added_tokens: List of the added tokens to find in texts. Defaults to
            none.
        **kwargs: See `keras_hub.tokenizers.BytePairTokenizer`.

    Call arguments:
        inputs: List of strings, or string tensor of shape `(batch,)`.

    Returns:
        List of lists of integers; in a graph, a `tf.RaggedTensor`.
    """

    backbone_cls = ModernBertBackbone
    # The encoder has no segments.
    second_segment = None

    def __init__(
        self,
        vocabulary: dict[str, int] | None = None,
        merges: list[str] | None = None,
        added_tokens: Iterable[str] = (),
        **kwargs: Any,
    ) -> None:
        # Use the graph code for eager calls, too, so that ids are the same.
        kwargs["_allow_python_workflow"] = False
        # "[SEP]" in a text is treated as plain text; see word_piece.py.
        kwargs["unsplittable_tokens"] = []
        for name in ("start", "end", "pad", "mask"):
            token = {"start": "[CLS]", "end": "[SEP]"}.get(name)
            self._add_special_token(
                token or f"[{name.upper()}]", f"{name}_token"
            )
        self.added_tokens = list(added_tokens)
        # KerasHub's code returns ragged tensors only if it runs in a graph.
        self._in_graph = tf.function(self._tokens, reduce_retracing=True)
        super().__init__(vocabulary=vocabulary, merges=merges, **kwargs)

    @property
    def separator_ids(self) -> list[int]:
        """Ids of the tokens between two texts."""
        return [self.end_token_id]

    def tokenize(
        self, inputs: Sequence[str] | tf.Tensor
    ) -> list[list[int]] | tf.RaggedTensor:
        """Converts texts to Unicode's form NFC, and returns their token ids."""
        tokens = self._in_graph(tf.convert_to_tensor(inputs))
        return tokens.to_list() if tf.executing_eagerly() else tokens

    def _tokens(self, texts: tf.Tensor) -> tf.RaggedTensor:
        texts = tf_text.normalize_utf8(texts, "NFC")
        if not self.added_tokens:
            return byte_pair_ids(self, texts)
        # A regular expression takes the first alternative that matches, so
        # longer tokens come first.
        longest_first = sorted(self.added_tokens, key=len, reverse=True)
        pattern = f"({'|'.join(map(re.escape, longest_first))})"
        pieces = tf_text.regex_split(texts, pattern, pattern)
        parts = pieces.flat_values
        is_added = tf.strings.regex_full_match(parts, pattern)
        ids: Any = self.token_to_id_map
        added = ids.lookup(tf.boolean_mask(parts, is_added))
        alone = tf.RaggedTensor.from_row_lengths(
            added, tf.cast(is_added, tf.int64)
        )
        words = byte_pair_ids(self, tf.where(is_added, "", parts))
        tokens = tf.concat([alone, words], axis=1)
        return pieces.with_flat_values(tokens).merge_dims(1, 2)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "added_tokens": self.added_tokens}
