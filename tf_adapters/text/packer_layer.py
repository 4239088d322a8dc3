"""A Keras layer that holds the packer, so that it is saved with the model."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters.data.tokens.packer import Packer
from tf_adapters.data.tokens.packer_choice import packer_of
from tf_adapters.encoders import tokenizer_files
from tf_adapters.text import packers

if TYPE_CHECKING:
    from typing import Literal

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.special_tokens import SpecialTokens
    from tf_adapters.models.adapter_model import AdapterModel


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
    """
    packer = packers.make_packer(
        tokenizer, model, preprocessor, max_length or MAX_LENGTH
    )
    if packer is None or isinstance(packer, PackerLayer):
        return packer
    return PackerLayer(packer)
