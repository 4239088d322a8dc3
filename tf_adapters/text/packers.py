"""Makes the packer of a text model."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.tokens.packer_choice import packer_of

if TYPE_CHECKING:
    from typing import Any
    from typing import Literal

    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.text.packer_layer import PackerLayer


def make_packer(
    tokenizer: Any,
    model: AdapterModel,
    preprocessor: Packer | PackerLayer | Literal["auto"] | None,
    max_length: int,
) -> Packer | PackerLayer | None:
    """Returns the packer that turns texts into token features, or `None`.

    Args:
        tokenizer: Tokenizer from `load_encoder`, or `None`.
        model: `AdapterModel`.
        preprocessor: `"auto"` to make a packer. A packer or `None` is returned
            unchanged.
        max_length: Maximum length in tokens. The encoder's limit applies if it
            is smaller.

    Raises:
        UserError: If `preprocessor` is `"auto"` and there is no tokenizer, or
            `max_length` is no integer.
    """
    if not isinstance(preprocessor, str):
        return preprocessor
    if tokenizer is None:
        raise UserError(
            "A text model packs texts with the encoder's tokenizer: "
            "`encoder, tokenizer = tf_adapters.load_encoder(...)`. Pass it as "
            "`tokenizer`, or `preprocessor=None` to train on token features."
        )
    if not isinstance(max_length, numbers.Integral):
        raise UserError(
            "`max_length` must be an integer, the maximum number of tokens. "
            f"Received: max_length={shown(max_length)}"
        )
    length = min(max_length, model.encoder.max_tokens or max_length)
    return packer_of(tokenizer, length, model.encoder_info.takes_segments)
