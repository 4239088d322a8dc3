"""A Keras layer that holds the packer, so that it is saved with the model."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.tokens.packer import Packer
from tf_adapters.data.tokens.packer_choice import packer_of
from tf_adapters.encoders import tokenizer_files
from tf_adapters.interop import formats
from tf_adapters.text import packers

if TYPE_CHECKING:
    from typing import Literal

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.special_tokens import SpecialTokens
    from tf_adapters.interop.stored_adapter import StoredAdapter
    from tf_adapters.models.adapter_model import AdapterModel


_LOGGER = logging.getLogger(__name__)
MAX_LENGTH = 128


@keras.saving.register_keras_serializable("tf_adapters")
class PackerLayer(keras.layers.Layer):
    """Packs texts into token features, in Python or in a graph.

    In a `.keras` file the tokenizer's vocabulary is an asset.

    Args:
        packer: `Packer`, or `None` (default) for a layer that is being loaded.
        stored: Settings of the packer to load: the entry `stored` of
            `get_config`. `None` (default) if `packer` is given.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        texts_a: Strings, `(batch,)`.
        texts_b: The second texts of pairs, or `None`.

    Returns:
        Dict of int32 arrays or tensors `(batch, tokens)`, see `TextPacker`.
    """

    def __init__(
        self,
        packer: Packer | None = None,
        stored: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(trainable=False, **kwargs)
        # `None` until a layer from a file has read its assets.
        self.packer: Packer | Any = packer
        self._stored: dict[str, Any] = stored or {}
        # As in KerasHub's tokenizers: do not convert texts to tensors.
        self._convert_input_args = False
        self._allow_non_tensor_positional_args = True
        self.built = True

    @property
    def max_length(self) -> int:
        """Maximum length of an input in tokens."""
        return self.packer.max_length

    @property
    def special_tokens(self) -> SpecialTokens:
        """The `SpecialTokens` around texts."""
        return self.packer.special_tokens

    def call(self, texts_a: Any, texts_b: Any = None) -> dict[str, Tensor]:
        return self.packer(texts_a, texts_b)

    def get_config(self) -> dict[str, Any]:
        packer = self.packer
        return {
            "name": self.name,
            "stored": {
                "max_length": packer.max_length,
                "takes_segments": packer.special_tokens.has_segments,
                "tokenizer": tokenizer_files.tokenizer_config(packer.tokenizer),
            },
        }

    def save_assets(self, folder: str) -> None:
        tokenizer_files.save_tokenizer_files(self.packer.tokenizer, folder)

    def load_assets(self, folder: str) -> None:
        stored = dict(self._stored)
        tokenizer = tokenizer_files.load_tokenizer(
            stored.pop("tokenizer"), folder
        )
        self.packer = packer_of(tokenizer, **stored)


def make_layer(
    tokenizer: Any,
    model: AdapterModel,
    preprocessor: Packer | PackerLayer | Literal["auto"] | None,
    max_length: int | None = None,
) -> PackerLayer | None:
    """Returns a text model's `PackerLayer`, or `None` if it has no packer.

    Args:
        tokenizer: See `packers.make_packer`.
        model: See `packers.make_packer`.
        preprocessor: See `packers.make_packer`. A `PackerLayer` is returned
            unchanged.
        max_length: Maximum length in tokens, or `None` (default) for 128.

    Raises:
        UserError: If `preprocessor` is something else, or a packer that has
            another maximum length. See also `packers.make_packer`.
    """
    is_packer = isinstance(preprocessor, Packer | PackerLayer | None)
    if not is_packer and preprocessor != "auto":
        raise UserError(
            '`preprocessor` is "auto", None, or a packer such as '
            "`tf_adapters.TextPacker(tokenizer, max_length=128)`. Received: "
            f"{shown(preprocessor)}"
        )
    # A layer from a `.keras` file, which is given alone, has no packer yet.
    if (
        max_length is not None
        and isinstance(preprocessor, Packer | PackerLayer)
        and max_length != preprocessor.max_length
    ):
        raise UserError(
            "The packer that is passed as `preprocessor` cuts texts at "
            f"{preprocessor.max_length} tokens. Leave `max_length` out. "
            f"Received: max_length={shown(max_length)}"
        )
    packer = packers.make_packer(
        tokenizer,
        model,
        preprocessor,
        MAX_LENGTH if max_length is None else max_length,
    )
    if packer is None or isinstance(packer, PackerLayer):
        return packer
    return PackerLayer(packer)


def warn_of_length(
    name: str, stored: StoredAdapter, layer: PackerLayer | None
) -> None:
    """Logs a warning if an adapter was trained on texts of another length.

    Args:
        name: Name of the adapter.
        stored: `StoredAdapter`. Those of other libraries name no length.
        layer: `PackerLayer` of the text model, or `None`.
    """
    if layer is None or stored.format != formats.OURS:
        return
    length = stored.config["details"].get("max_length")
    if length not in (None, layer.max_length):
        _LOGGER.warning(
            "Adapter `%s` was trained with max_length=%s, but this model cuts "
            "texts at %s tokens, so its answers to longer texts differ. Make "
            "the model with the same `max_length`.",
            *(name, shown(length), layer.max_length),
        )
