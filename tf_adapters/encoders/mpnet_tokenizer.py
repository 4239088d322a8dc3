"""MPNet's tokenizer: BERT's WordPiece with RoBERTa's special tokens."""

import keras

from tf_adapters.encoders.mpnet import MPNetBackbone
from tf_adapters.encoders.word_piece import WordPieceTokenizer

_SPECIAL_TOKENS = {
    "[CLS]": "<s>",
    "[SEP]": "</s>",
    "[PAD]": "<pad>",
    "[MASK]": "<mask>",
}


@keras.saving.register_keras_serializable("tf_adapters")
class MPNetTokenizer(WordPieceTokenizer):
    """Turns texts into token ids, without special tokens.

    Two texts are packed as `<s> a </s></s> b </s>`. Takes the same arguments as
    `WordPieceTokenizer`.
    """

    backbone_cls = MPNetBackbone
    second_segment = 0

    @property
    def separator_ids(self) -> list[int]:
        """Ids of the tokens between two texts."""
        return [self.end_token_id] * 2

    def _add_special_token(self, token: str, name: str) -> None:
        super()._add_special_token(_SPECIAL_TOKENS[token], name)
