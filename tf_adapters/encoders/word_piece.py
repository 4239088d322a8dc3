"""WordPiece in the graph, with the text clean-up of the checkpoint's own.

KerasHub's tokenizer folds case by Unicode's NFKC rules, where BERT lowercases:
"½", "™", "…" or "ß" become other text, and control characters and
no-break spaces are treated differently. Here the text is cleaned as the
`BertNormalizer` of Hugging Face's tokenizers does it, and KerasHub's class
splits and looks up. Two differences remain, both on purpose or rare:

- "[SEP]" and the like in a text are text, not special tokens; a served model
  must not let its input place separators.
- A word longer than 100 bytes is `[UNK]`; in the original the limit is 100
  characters.
"""

import keras
import keras_hub
import tensorflow as tf
import tensorflow_text as tf_text

# Control, format, private and unassigned characters, save for these three.
_DROPPED = r"[^\P{C}\t\n\r]|\x{fffd}"
_SPACES = r"[\t\n\r\p{Z}]"


def lowercased(texts):
    """Returns lowercase texts, whatever the machine's locale is."""
    # ICU lowercases these two by context and by the machine's locale
    # (Turkish); the original goes by the character alone.
    texts = tf.strings.regex_replace(texts, "I", "i")
    texts = tf.strings.regex_replace(texts, "Σ", "σ")
    return tf.strings.lower(texts, encoding="utf-8")


@keras.saving.register_keras_serializable("tf_adapters")
class WordPieceTokenizer(keras_hub.models.BertTokenizer):
    """Turns texts into token ids, without special tokens.

    Args:
        vocabulary: List of tokens in the order of their ids.
        lowercase: Whether text is lowercased.
        strip_accents: Whether accents are removed. `None` (default) follows
            `lowercase`, as in BERT.
        split_on_cjk: Whether each Chinese character is a word.

    Call arguments:
        inputs: List of strings, or string tensor of shape `(batch,)`.

    Returns:
        List of lists of integers; in a graph, a `tf.RaggedTensor`.
    """

    def __init__(
        self,
        vocabulary=None,
        lowercase=True,
        strip_accents=None,
        split_on_cjk=True,
        **kwargs,
    ):
        # Eager calls take the same path as graphs, so that ids are the same.
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

    def tokenize(self, inputs):
        """Returns the token ids of cleaned texts."""
        return super().tokenize(self._clean(tf.convert_to_tensor(inputs)))

    def _clean(self, texts):
        texts = tf.strings.regex_replace(texts, _DROPPED, "")
        texts = tf.strings.regex_replace(texts, _SPACES, " ")
        if self.strips_accents:
            texts = tf_text.normalize_utf8(texts, "NFD")
            texts = tf.strings.regex_replace(texts, r"\p{Mn}", "")
        return lowercased(texts) if self.lowercases else texts

    def get_config(self):
        return {
            **super().get_config(),
            "lowercase": self.lowercases,
            "strip_accents": self.strips_accents,
            "split_on_cjk": self.split_on_cjk,
        }
