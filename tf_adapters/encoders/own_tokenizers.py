"""Imports this library's tokenizers, so that Keras can find their classes.

Import this file only if TensorFlow Text is installed.
"""

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
