"""Keeps SentencePiece vocabularies when TensorFlow's seed is set."""

import hashlib
from typing import Any

import keras_hub

from tf_adapters.common.extras import needs_tensorflow_text

with needs_tensorflow_text():
    from tensorflow_text.python.ops import sentencepiece_tokenizer


class _SharedVocabulary(sentencepiece_tokenizer._SentencepieceModelResource):
    """A vocabulary that TensorFlow keeps until the process ends."""

    def _create_resource(self) -> Any:
        operations: Any = sentencepiece_tokenizer.gen_sentencepiece_tokenizer
        return operations.sentencepiece_op(
            model=self._model,
            shared_name=hashlib.sha256(self._model).hexdigest(),
        )


def keep_vocabulary(tokenizer: Any) -> None:
    """Makes a tokenizer's SentencePiece vocabulary survive a new seed.

    TensorFlow Text ties the vocabulary to a kernel, and
    `keras.utils.set_random_seed` and `tf.random.set_seed` delete all kernels:
    afterwards the tokenizer fails with `NotFoundError`. A vocabulary that has a
    name is kept. The name is a hash of the content, so that all tokenizers with
    the same content have one vocabulary. Other tokenizers are left as they are.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
    """
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        library: Any = tokenizer._sentence_piece
        library._model_resource = _SharedVocabulary(tokenizer.proto, None)
