"""Writes a packer as `tokenizer.json`, which the library `tokenizers` reads."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from tokenizers import processors

from tf_adapters.data.tokens import vocabulary
from tf_adapters.encoders.word_piece import WordPieceTokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.data.tokens.packer import Packer

FILE = "tokenizer.json"
_LOGGER = logging.getLogger(__name__)


def write(packer: Packer, folder: Path) -> bool:
    """Writes `tokenizer.json` with special tokens, truncation and padding.

    Args:
        packer: `TextPacker`.
        folder: Path of an existing folder.

    Returns:
        Whether the file was written. If the encoder's tokenizer is not
        WordPiece, a warning is logged instead.
    """
    if not isinstance(packer.tokenizer, WordPieceTokenizer):
        _LOGGER.warning(
            "There is no %s next to the model, because the encoder's tokenizer "
            "is not WordPiece. Make token ids with `tf_adapters.TextPacker`, "
            "or with the tokenizer of the encoder's folder.",
            FILE,
        )
        return False
    tokenizer = _word_piece(packer.tokenizer)
    _add_special_tokens(tokenizer, packer)
    tokenizer.enable_truncation(packer.max_length, strategy="longest_first")
    special = packer.special_tokens
    tokenizer.enable_padding(
        pad_id=special.pad, pad_token=tokenizer.id_to_token(special.pad)
    )
    tokenizer.save(str(folder / FILE))
    return True


def _word_piece(tokenizer: WordPieceTokenizer) -> tokenizers.Tokenizer:
    """Returns a `tokenizers.Tokenizer` without special tokens."""
    tokens = vocabulary.tokens_of(tokenizer)
    new = tokenizers.Tokenizer(
        models.WordPiece(
            {token: i for i, token in enumerate(tokens)},
            unk_token=tokenizer.oov_token,
            max_input_chars_per_word=100,
            continuing_subword_prefix=tokenizer.suffix_indicator,
        )
    )
    new.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=tokenizer.split_on_cjk,
        strip_accents=tokenizer.strips_accents,
        lowercase=tokenizer.lowercases,
    )
    new.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return new


def _add_special_tokens(
    tokenizer: tokenizers.Tokenizer, packer: Packer
) -> None:
    special = packer.special_tokens
    start, end, *separators = map(
        tokenizer.id_to_token,
        (special.start, special.end, *special.separators),
    )
    number = special.second_segment or 0
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[start, "$A", end],
        pair=[start, "$A", *separators, f"$B:{number}", f"{end}:{number}"],
        special_tokens=list(
            {
                start: special.start,
                end: special.end,
                **dict(zip(separators, special.separators, strict=True)),
            }.items()
        ),
    )
