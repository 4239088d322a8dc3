"""DeBERTa-v3's SentencePiece tokenizer, which runs in a graph."""

from typing import Any

import keras
import keras_hub


@keras.saving.register_keras_serializable("tf_adapters")
class DebertaTokenizer(keras_hub.models.DebertaV3Tokenizer):
    """Turns texts into token ids, without special tokens.

    Two texts are packed as `[CLS] a [SEP] b [SEP]`.

    Args:
        proto: Path or bytes of a SentencePiece model.
        **kwargs: See `keras_hub.models.DebertaV3Tokenizer`.

    Call arguments:
        inputs: List of strings, or string tensor of shape `(batch,)`.

    Returns:
        List of lists of integers; in a graph, a `tf.RaggedTensor`.
    """

    # The encoder has no segments.
    second_segment = None

    def __init__(self, proto: str | bytes | None = None, **kwargs: Any) -> None:
        # Use the graph code for eager calls, too, so that ids are the same.
        kwargs["_allow_python_workflow"] = False
        super().__init__(proto=proto, **kwargs)

    @property
    def separator_ids(self) -> list[int]:
        """Ids of the tokens between two texts."""
        return [self.end_token_id]
