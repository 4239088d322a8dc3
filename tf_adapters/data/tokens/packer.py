"""Base class of packers: special tokens and length limits."""

from __future__ import annotations

import copy
import operator
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import offsets
from tf_adapters.data.tokens import vocabulary
from tf_adapters.data.tokens.special_tokens import special_tokens_of

if TYPE_CHECKING:
    import numpy as np


class Packer:
    """Packs texts into an encoder's inputs; see `TextPacker`.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        max_length: Largest number of tokens, including special tokens.
        takes_segments: See `TextPacker`.

    Attributes:
        progress_title: Title of the progress bar while many texts are
            tokenized, or `None` (default) for no bar.

    Raises:
        UserError: If `max_length` is not an integer or has no room for text.
    """

    progress_title: str | None = None

    def __init__(
        self,
        tokenizer: Any,
        max_length: int,
        takes_segments: bool | None = None,
    ) -> None:
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.special_tokens = special_tokens_of(tokenizer, takes_segments)
        self._mask = None
        self.check_length("max_length", max_length, num_texts=2)

    def __call__(
        self, texts_a: Any, texts_b: Any = None, sequence_length: Any = None
    ) -> dict[str, Any]:
        """Packs a batch; see `TextPacker`."""
        raise NotImplementedError

    def token_arrays(self, texts: Any) -> list[np.ndarray]:
        """Returns the token ids of each text, without special tokens."""
        raise NotImplementedError

    def check_length(self, name: str, value: Any, num_texts: int) -> None:
        """Raises a `UserError` if rows of a given length cannot hold a text.

        Args:
            name: Name of the argument, for the error.
            value: Length of a row, including special tokens. It must have room
                for at least one token of each text.
            num_texts: Number of texts packed together, 1 or 2.

        Raises:
            UserError: If the length is too small or not an integer.
        """
        num_special = 2
        texts = "a text needs 2 special tokens and at least one of its own"
        if num_texts == 2:
            num_special += len(self.special_tokens.separators)
            texts = (
                f"two texts need {num_special} special tokens and at least one "
                "each"
            )
        least = num_special + num_texts
        try:
            if operator.index(value) >= least:
                return
        except TypeError:
            pass  # Not an integer.
        raise UserError(
            f"Invalid value for argument `{name}`: {texts}, so it must be an "
            f"integer of at least {least}. Received: {name}={value!r:.100}"
        )

    def limit(self, sequence_length: int | None, num_texts: int) -> int:
        """Returns the smaller of `max_length` and the given row length.

        Args:
            sequence_length: Length of the rows, or `None` for any length.
            num_texts: See `check_length`.

        Raises:
            UserError: If the length is too small or not an integer.
        """
        if sequence_length is None:
            return self.max_length
        self.check_length("sequence_length", sequence_length, num_texts)
        return min(self.max_length, sequence_length)

    def tokenize_with_offsets(
        self, texts: Any
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns the tokens of each text and their offsets; see `offsets`.

        This works eagerly only.
        """
        return offsets.tokenize_with_offsets(self.tokenizer, texts)

    @property
    def special_ids(self) -> list[Any]:
        """Sorted ids of the special tokens, including padding."""
        special = self.special_tokens
        ids = (special.start, *special.separators, special.end, special.pad)
        return sorted(set(ids))

    @property
    def mask_id(self) -> Any:
        """Id of the mask token.

        Raises:
            UserError: If the tokenizer has no mask token.
        """
        if self.tokenizer.mask_token_id is None:
            raise UserError(
                "The encoder's tokenizer has no mask token, so it cannot be "
                "used for masked language modeling."
            )
        return self.tokenizer.mask_token_id

    @property
    def mask(self) -> Any:
        """The mask token as it is written in texts."""
        mask_id = self.mask_id
        return vocabulary.tokens_of(self.tokenizer)[mask_id]

    def reading_masks(self) -> Self:
        """Returns a copy that recognizes the mask token in texts.

        The original packer treats all special tokens in texts as plain text.
        """
        packer = copy.copy(self)
        packer._mask = self.mask
        return packer

    def too_long(self, text: str) -> str:
        """Returns a text repeated often enough to exceed `max_length`."""
        return text * self.max_length


def not_texts(name: str, texts: Any) -> UserError:
    """Returns the error for an argument that is not a list of strings."""
    received = f"{name}={texts!r:.100}"
    if isinstance(texts, list | tuple):
        wrong = [i for i, t in enumerate(texts) if not isinstance(t, str)]
        if wrong:
            received += (
                f", in which {name}[{wrong[0]}] is {texts[wrong[0]]!r:.40}"
            )
    return UserError(
        f"`{name}` must be a list of strings; the second texts of pairs are a "
        f"list of their own, `packer(texts_a, texts_b)`. Received: {received}"
    )
