"""Quantizes an encoder's kernels and embeddings to 8 or 4 bits."""

from __future__ import annotations

import gc
import math
from typing import TYPE_CHECKING
from typing import Any

import keras
import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.encoders.loaded_weights import hash_of_weights
from tf_adapters.encoders.loaded_weights import loaded_weights
from tf_adapters.layers.quantized import is_quantized

if TYPE_CHECKING:
    import keras_hub

    from tf_adapters.encoders.encoder import Encoder

# Classes of layers whose weights are quantized. `layers.quantized` reads these
# weights.
_KINDS = (
    keras.layers.Dense,
    keras.layers.EinsumDense,
    keras.layers.Embedding,
)
# Only weights are quantized, not activations. If activations were rounded, the
# output for a text would depend on the other texts of its batch.
_NO_QUANTIZER: Any = None  # Keras's type annotations do not allow `None`.
_CONFIGS: dict[str, Any] = {
    "int8": keras.quantizers.Int8QuantizationConfig(
        activation_quantizer=_NO_QUANTIZER
    ),
    "int4": keras.quantizers.Int4QuantizationConfig(block_size=128),
}


def check_mode(mode: str | None) -> None:
    """Raises a `UserError` unless `mode` is `None`, `"int8"` or `"int4"`."""
    if mode is not None:
        check_known("value of `quantize`", mode, _CONFIGS)


def quantize_encoder(encoder: Encoder, mode: str | None) -> None:
    """Quantizes an encoder in place; its fingerprint does not change.

    Args:
        encoder: `Encoder` with the weights of its checkpoint.
        mode: `"int8"`, with one scale per output; `"int4"`, with a scale and a
            zero point per 128 inputs of an output; or `None`, which changes
            nothing.

    Raises:
        UserError: If the encoder is quantized already.
    """
    if mode is None:
        return
    check_float(encoder.backbone)
    fingerprint = hash_of_weights(encoder.backbone, encoder.settings, {})
    quantize_backbone(encoder.backbone, mode)
    encoder.loaded.given_fingerprint = fingerprint


def quantize_backbone(backbone: keras_hub.models.Backbone, mode: str) -> None:
    """Quantizes the kernels and embeddings of a KerasHub backbone in place.

    Args:
        backbone: KerasHub backbone.
        mode: `"int8"` or `"int4"`.
    """
    loaded = loaded_weights(backbone)
    loaded.num_weights = backbone.count_params()
    # Keras collects garbage after each layer, which is faster if existing
    # objects are frozen.
    gc.freeze()
    try:
        backbone.quantize(
            mode,
            config=_CONFIGS[mode],
            filters=lambda layer: isinstance(layer, _KINDS),
            # Allow KerasHub's embedding layer, a subclass without own code.
            type_check=False,
        )
    finally:
        gc.unfreeze()
    loaded.quantization = mode


def check_float(backbone: keras_hub.models.Backbone) -> None:
    """Raises a `UserError` if weights were quantized outside of this library.

    The fingerprint of the original weights is then unknown.
    """
    if loaded_weights(backbone).quantization:
        return
    for variable in backbone.weights:
        if is_quantized(variable):
            raise UserError(
                f"The encoder is quantized: `{variable.path}` has type "
                f"{variable.dtype}, and its fingerprint, that of the original "
                "weights, is unknown. Load the original weights with "
                '`tf_adapters.load_encoder(name, quantize="int8")`.'
            )


def count_weights(backbone: keras_hub.models.Backbone) -> int:
    """Returns the number of a backbone's weights.

    Scales and zero points of quantized weights do not count.
    """
    return loaded_weights(backbone).num_weights or backbone.count_params()


def count_bytes(backbone: keras_hub.models.Backbone) -> int:
    """Returns the number of bytes of a backbone's weights, including scales."""
    return sum(
        math.prod(variable.shape) * np.dtype(variable.dtype).itemsize
        for variable in backbone.weights
    )
