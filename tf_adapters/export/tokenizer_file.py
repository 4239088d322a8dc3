"""Writes a packer as `tokenizer.json`, which the library `tokenizers` reads.

The encoder's own `tokenizer.json` is used, or a tokenizer is made from its
vocabulary. Either must give the packer's token ids for 1,000 unusual texts. As
in the packer, special tokens in a text are plain text, and NUL is ignored.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import tokenizers
from tokenizers import normalizers
from tokenizers import processors

from tf_adapters.common.errors import cut
from tf_adapters.data.tokens import library_tokenizers
from tf_adapters.data.tokens.library_tokenizers import token_name
from tf_adapters.export import odd_texts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tf_adapters.data.tokens.packer import Packer

FILE = "tokenizer.json"
_LOGGER = logging.getLogger(__name__)


def write(packer: Packer, folder: Path, encoder: Path | None = None) -> bool:
    """Writes `tokenizer.json` with special tokens, truncation and padding.

    Args:
        packer: `TextPacker`.
        folder: Path of an existing folder.
        encoder: Path of the encoder's folder, or `None` (default) if it has
            none.

    Returns:
        Whether the file was written. If no tokenizer gives the same token ids
        as the packer, a warning is logged instead.
    """
    for tokenizer in _candidates(packer, encoder):
        if _gives_ids_of(packer, tokenizer):
            _frame(tokenizer, packer)
            tokenizer.save(str(folder / FILE))
            return True
    _LOGGER.warning(
        "There is no %s and no run.py next to the model, because the library "
        "`tokenizers` does not give the token ids of this encoder's %s. Make "
        "token ids with `tf_adapters.TextPacker`.",
        FILE,
        type(packer.tokenizer).__name__,
    )
    return False


def _candidates(
    packer: Packer, encoder: Path | None
) -> Iterator[tokenizers.Tokenizer]:
    """Yields tokenizers that may give the same token ids as the packer.

    These tokenizers treat special tokens in a text as plain text.
    """
    if hasattr(packer.tokenizer, "to_json"):
        yield _plain(packer.tokenizer.to_json())
        return
    if encoder is not None and (encoder / FILE).is_file():
        try:
            yield _plain((encoder / FILE).read_text(encoding="utf-8"))
        # The library raises plain exceptions.
        except Exception as error:
            _LOGGER.warning(
                "%s is no file of the library `tokenizers` (%s), so the "
                "tokenizer is made from the vocabulary.",
                encoder / FILE,
                cut(error),
            )
    made = library_tokenizers.library_tokenizer(packer.tokenizer)
    if made is not None:
        yield made


def _plain(content: str) -> tokenizers.Tokenizer:
    """Makes a tokenizer from the content of a `tokenizer.json`.

    The tokenizer treats special tokens in a text as plain text.
    """
    values = json.loads(content)
    values["added_tokens"] = [
        token for token in values["added_tokens"] if not token["special"]
    ]
    values |= {"post_processor": None, "truncation": None, "padding": None}
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(values))
    steps = [library_tokenizers.without_nul(), tokenizer.normalizer]
    tokenizer.normalizer = normalizers.Sequence([s for s in steps if s])
    return tokenizer


def _gives_ids_of(packer: Packer, tokenizer: tokenizers.Tokenizer) -> bool:
    """Returns whether tokenizer and packer give equal ids for unusual texts.

    For a unigram model, the order of the ids may differ: if a word can be split
    into the same pieces in different orders ("a" + "aa" or "aa" + "a"), all
    these splits are equally likely.
    """
    texts = odd_texts.make()
    found = tokenizer.encode_batch(texts, add_special_tokens=False)
    is_unigram = isinstance(tokenizer.model, tokenizers.models.Unigram)
    order = sorted if is_unigram else list
    return all(
        order(ours.tolist()) == order(theirs.ids)
        for ours, theirs in zip(packer.token_arrays(texts), found, strict=True)
    )


def _frame(tokenizer: tokenizers.Tokenizer, packer: Packer) -> None:
    """Gives a tokenizer the packer's special tokens, truncation and padding."""
    special = packer.special_tokens
    start, end, *separators = (
        token_name(tokenizer, token_id)
        for token_id in (special.start, special.end, *special.separators)
    )
    number = special.second_segment or 0
    ids = {start: special.start, end: special.end}
    ids |= dict(zip(separators, special.separators, strict=True))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=[start, "$A", end],
        pair=[start, "$A", *separators, f"$B:{number}", f"{end}:{number}"],
        special_tokens=list(ids.items()),
    )
    tokenizer.enable_truncation(packer.max_length, strategy="longest_first")
    pad = token_name(tokenizer, special.pad)
    tokenizer.enable_padding(pad_id=special.pad, pad_token=pad)
