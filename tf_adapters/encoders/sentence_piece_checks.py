"""Checks SentencePiece models before TensorFlow Text reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from google.protobuf.message import DecodeError

from tf_adapters.common.errors import UserError


def check_model(path: str | Path) -> None:
    """Checks the pieces of a SentencePiece model.

    TensorFlow Text does not: a NUL in a piece ends the process.

    Args:
        path: Path of the model, `sentencepiece.bpe.model` for example.

    Raises:
        UserError: If the model is damaged.
    """
    # Imported here, because few tokenizers need it. Of the modules that define
    # these messages a process can load only one: that of transformers.
    from transformers.convert_slow_tokenizer import import_protobuf

    messages: Any = import_protobuf()
    try:
        model = messages.ModelProto.FromString(Path(path).read_bytes())
        pieces = [piece.piece for piece in model.pieces]
    except DecodeError as error:
        raise _damaged(path, "it is not a SentencePiece model") from error
    if not pieces:
        raise _damaged(path, "it has no pieces")
    # Python's messages have a string that is not UTF-8 as bytes.
    if any(isinstance(piece, bytes) for piece in pieces):
        raise _damaged(path, "a piece is not UTF-8")
    if any("\0" in piece for piece in pieces):
        raise _damaged(path, "a piece has a NUL")


def _damaged(path: str | Path, reason: str) -> UserError:
    return UserError(
        f"The vocabulary `{path}` is damaged: {reason}. Copy it again from "
        "where it comes from."
    )
