"""Makes the packer for a tokenizer, with or without TensorFlow Text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters.common.extras import has_tensorflow_text
from tf_adapters.data.tokens.python_packing import PythonPacker

if TYPE_CHECKING:
    from typing import Any

    from tf_adapters.data.tokens.packer import Packer


def packer_of(tokenizer: Any, max_length: int, takes_segments: bool) -> Packer:
    """Makes a `TextPacker`, or a `PythonPacker` without TensorFlow Text.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        max_length: Maximum length in tokens.
        takes_segments: Whether the encoder reads segment ids.
    """
    if not has_tensorflow_text():
        return PythonPacker(tokenizer, max_length, takes_segments)
    from tf_adapters.data.tokens.packing import TextPacker

    return TextPacker(tokenizer, max_length, takes_segments)
