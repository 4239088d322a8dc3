"""Imports this library's tokenizers, so that Keras can find their classes.

Import this file only if TensorFlow Text is installed.
"""

import keras_hub

from tf_adapters.encoders.albert_tokenizer import AlbertTokenizer
from tf_adapters.encoders.deberta_tokenizer import DebertaTokenizer
from tf_adapters.encoders.modernbert_tokenizer import ModernBertTokenizer
from tf_adapters.encoders.mpnet_tokenizer import MPNetTokenizer
from tf_adapters.encoders.roberta_tokenizer import RobertaTokenizer
from tf_adapters.encoders.word_piece import WordPieceTokenizer

__all__ = [
    "AlbertTokenizer",
    "DebertaTokenizer",
    "MPNetTokenizer",
    "ModernBertTokenizer",
    "RobertaTokenizer",
    "WordPieceTokenizer",
]


def of_preset(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> keras_hub.tokenizers.Tokenizer:
    """Replaces KerasHub's ALBERT, DeBERTa-v3 or RoBERTa tokenizer by ours.

    Other tokenizers are returned unchanged. KerasHub's ALBERT tokenizer does
    not lowercase texts, although the vocabularies of its presets contain only
    lowercase pieces. For its RoBERTa tokenizer, see `byte_pairs`.
    """
    if type(tokenizer) is keras_hub.models.RobertaTokenizer:
        return RobertaTokenizer(
            tokenizer.vocabulary,
            tokenizer.merges,
            add_prefix_space=tokenizer.add_prefix_space,
        )
    ours = {
        keras_hub.models.AlbertTokenizer: AlbertTokenizer,
        keras_hub.models.DebertaV3Tokenizer: DebertaTokenizer,
    }
    cls = ours.get(type(tokenizer))
    return tokenizer if cls is None else cls(tokenizer.proto)
