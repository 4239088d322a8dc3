"""What packers share: the tokens around texts, and how long texts may be."""

import copy
import operator

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import vocabulary
from tf_adapters.data.tokens.special_tokens import special_tokens_of


class Packer:
    """Packs texts into an encoder's inputs; see `TextPacker`.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        max_length: Longest number of tokens, special tokens included.
        takes_segments: See `TextPacker`.

    Attributes:
        progress_title: What a progress bar says while many texts are tokenized;
            `None` (default) for no bar.

    Raises:
        UserError: If `max_length` is no integer, or leaves no room for text.
    """

    progress_title = None

    def __init__(self, tokenizer, max_length, takes_segments=None):
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.special_tokens = special_tokens_of(tokenizer, takes_segments)
        self._mask = None
        self.check_length("max_length", max_length, num_texts=2)

    def check_length(self, name, value, num_texts):
        """Raises an error unless a length has room for a token of each text."""
        num_special = 2
        texts = "a text needs 2 special tokens and one of its own"
        if num_texts == 2:
            num_special += len(self.special_tokens.separators)
            texts = f"two texts need {num_special} special tokens and one each"
        least = num_special + num_texts
        try:
            if operator.index(value) >= least:
                return
        except TypeError:
            pass  # It is no integer.
        raise UserError(
            f"Invalid value for argument `{name}`: {texts}, so that it must be "
            f"an integer from {least} on. Received: {name}={value!r:.100}"
        )

    @property
    def special_ids(self):
        """Ids of the special tokens, that of padding too, once each."""
        special = self.special_tokens
        ids = (special.start, *special.separators, special.end, special.pad)
        return sorted(set(ids))

    @property
    def mask_id(self):
        """Id of the token that hides another.

        Raises:
            UserError: If the tokenizer has none.
        """
        if self.tokenizer.mask_token_id is None:
            raise UserError(
                "The encoder's tokenizer has no token that hides others, so "
                "there is no masked language modelling with it."
            )
        return self.tokenizer.mask_token_id

    @property
    def mask(self):
        """The token that hides another, as texts have it."""
        mask_id = self.mask_id
        return vocabulary.tokens_of(self.tokenizer)[mask_id]

    def reading_masks(self):
        """Returns a packer to which the mask token in a text is that token.

        To this one it is text, as all special tokens are.
        """
        packer = copy.copy(self)
        packer._mask = self.mask
        return packer

    def too_long(self, text):
        """Returns a text, repeated until it has more tokens than fit."""
        return text * self.max_length
