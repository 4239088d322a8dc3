"""WordPiece in the graph, with the text cleanup of the original BERT.

KerasHub's tokenizer folds case by Unicode's NFKC rules, but BERT lowercases.
KerasHub therefore changes "½", "™", "…" and "ß" to other text, and treats
control characters and no-break spaces differently. Here, texts are cleaned as
in the `BertNormalizer` of Hugging Face's tokenizers. Then KerasHub's class
splits them and looks up ids. One difference from the original remains:
special tokens such as "[SEP]" in a text are treated as text, because the input
of a served model must not insert separators.
"""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

# Characters to remove: the replacement character U+FFFD, and control, format,
# private and unassigned characters except for tab and line ends.
_DROPPED = r"[^\P{C}\t\n\r]|\x{fffd}"
_SPACES = r"[\t\n\r\p{Z}]"
_MAX_CHARACTERS = 100


def lowercased(texts: tf.Tensor) -> tf.Tensor:
    """Returns lowercase texts, independent of the machine's locale."""
    # How ICU lowercases "I" and "Σ" depends on the context and on the machine's
    # locale (Turkish). In the original, it depends on the character only.
    texts = tf.strings.regex_replace(texts, "I", "i")
    texts = tf.strings.regex_replace(texts, "Σ", "σ")
    return tf.strings.lower(texts, encoding="utf-8")


class _WordPieces(tf_text.FastWordpieceTokenizer):
    """Makes words of more than 100 characters unknown, as BERT does.

    TensorFlow Text limits the bytes of a word. A character has up to four.
    """

    def tokenize(self, input: tf.RaggedTensor) -> tf.RaggedTensor:
        return super().tokenize(tf.ragged.map_flat_values(_within_limit, input))


def _within_limit(words: tf.Tensor) -> tf.Tensor:
    """Replaces words of too many characters by one of too many bytes."""
    lengths = tf.strings.length(words, "UTF8_CHAR")
    unknown = "x" * (4 * _MAX_CHARACTERS + 1)
    return tf.where(lengths > _MAX_CHARACTERS, unknown, words)


@keras.saving.register_keras_serializable("tf_adapters")
class WordPieceTokenizer(keras_hub.models.BertTokenizer):
    """Turns texts into token ids, without special tokens.

    Args:
        vocabulary: List of tokens in the order of their ids.
        lowercase: Whether to lowercase texts. Defaults to `True`.
        strip_accents: Whether to remove accents. `None` (default) for the value
            of `lowercase`, as in BERT.
        split_on_cjk: Whether each Chinese character is a word. Defaults to
            `True`.
        **kwargs: See `keras_hub.models.BertTokenizer`.

    Call arguments:
        inputs: List of strings, or string tensor of shape `(batch,)`.

    Returns:
        List of lists of integers; in a graph, a `tf.RaggedTensor`.
    """

    def __init__(
        self,
        vocabulary: list[str] | None = None,
        lowercase: bool = True,
        strip_accents: bool | None = None,
        split_on_cjk: bool = True,
        **kwargs: Any,
    ) -> None:
        # Use the graph code for eager calls, too, so that ids are the same.
        kwargs["_allow_python_workflow"] = False
        super().__init__(
            vocabulary=vocabulary,
            lowercase=False,
            strip_accents=False,
            split_on_cjk=split_on_cjk,
            **kwargs,
        )
        self.lowercases = lowercase
        self.strips_accents = (
            lowercase if strip_accents is None else strip_accents
        )

    def tokenize(
        self, inputs: Sequence[str] | tf.Tensor
    ) -> list[list[int]] | tf.RaggedTensor:
        """Cleans texts as BERT does, and returns their token ids."""
        return super().tokenize(self._clean(tf.convert_to_tensor(inputs)))

    def _clean(self, texts: tf.Tensor) -> tf.Tensor:
        texts = tf.strings.regex_replace(texts, _DROPPED, "")
        texts = tf.strings.regex_replace(texts, _SPACES, " ")
        if self.strips_accents:
            texts = tf_text.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")
        return lowercased(texts) if self.lowercases else texts

    def _set_vocabulary_tf(self) -> None:
        self._fast_word_piece = _WordPieces(
            vocab=self.vocabulary,
            token_out_type=tf.as_dtype(self.compute_dtype),
            suffix_indicator=self.suffix_indicator,
            unknown_token=self.oov_token,
            max_bytes_per_word=4 * _MAX_CHARACTERS,
            no_pretokenization=True,
            support_detokenization=True,
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "lowercase": self.lowercases,
            "strip_accents": self.strips_accents,
            "split_on_cjk": self.split_on_cjk,
        }
