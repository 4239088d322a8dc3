"""Makes the packer of a server, which tokenizes a few texts fast.

TensorFlow Text takes five milliseconds for a batch of any size, and the library
`tokenizers` a tenth of a millisecond for a text.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tokenizers

from tf_adapters.data.tokens.library_tokenizers import library_tokenizer
from tf_adapters.data.tokens.packer import Packer
from tf_adapters.data.tokens.packer_choice import packer_of
from tf_adapters.data.tokens.python_packing import PythonPacker
from tf_adapters.export import odd_texts


class FastPacker(PythonPacker):
    """Packs texts with a tokenizer of the library `tokenizers`.

    Args:
        tokenizer: The encoder's tokenizer, from `load_encoder`. It defines the
            special tokens.
        fast: Tokenizer of `tokenizers` that gives the same ids.
        max_length: See `PythonPacker`.
        takes_segments: See `PythonPacker`.
    """

    def __init__(
        self,
        tokenizer: Any,
        fast: tokenizers.Tokenizer,
        max_length: int,
        takes_segments: bool,
    ) -> None:
        super().__init__(tokenizer, max_length, takes_segments)
        self._fast = fast

    def token_arrays(self, texts: Any) -> list[np.ndarray]:
        """Returns an int32 array of tokens for each text of a list."""
        # The packer of training ignores NUL, too.
        clean = [text.replace("\0", "") for text in texts]
        found = self._fast.encode_batch(clean, add_special_tokens=False)
        return [np.asarray(one.ids, "int32") for one in found]


class Packers:
    """Makes packers for an encoder.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        takes_segments: Whether the encoder reads segment ids.
    """

    def __init__(self, tokenizer: Any, takes_segments: bool) -> None:
        self._tokenizer = tokenizer
        self._takes_segments = takes_segments
        self._fast = self._equal_tokenizer()

    def make(self, max_length: int) -> Packer:
        """Returns a packer that packs as in training, as fast as possible."""
        options = max_length, self._takes_segments
        if self._fast is None:
            return packer_of(self._tokenizer, *options)
        return FastPacker(self._tokenizer, self._fast, *options)

    def _equal_tokenizer(self) -> tokenizers.Tokenizer | None:
        """Returns a tokenizer of `tokenizers` that gives the same ids.

        They are compared on 1,000 unusual texts. Returns `None` if there is no
        such tokenizer.
        """
        try:
            fast = library_tokenizer(self._tokenizer)
        except Exception:  # The library raises plain exceptions.
            return None
        if fast is None:
            return None
        texts = odd_texts.make()
        found = fast.encode_batch(texts, add_special_tokens=False)
        packer = packer_of(self._tokenizer, 512, self._takes_segments)
        expected = packer.token_arrays(texts)
        is_equal = all(
            ids.tolist() == one.ids
            for ids, one in zip(expected, found, strict=True)
        )
        return fast if is_equal else None
