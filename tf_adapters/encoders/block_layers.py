"""Finds the projections, dense layers and norms of a transformer block.

This is the only file that reads KerasHub's private attributes. For each
architecture, a test in `tests/models/adapted_encoder_test.py` fails if KerasHub
changes them.
"""

import dataclasses
from typing import Any

from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import PROJECTIONS


@dataclasses.dataclass(frozen=True)
class BlockLayers:
    """The layers of a transformer block.

    Attributes:
        query, key, value, output: Attention's projections: built layers with a
            `kernel` and a `bias`. `bias` is `None` if a layer has no bias.
        ffn_up, ffn_down: The first and the second layer of the feed-forward
            network, also with a `kernel` and a `bias`.
        attention_norm, ffn_norm: The norms of the two sublayers: built layers
            with `gamma` and `beta`. `beta` is `None` if a norm has no beta.
            `attention_norm` is `None` if a pre-norm block has no such norm.
        num_heads: Integer. Number of attention heads.

    Examples:
        >>> from tf_adapters.encoders import block_layers
        >>> block = encoder.backbone.transformer_layers[0]
        >>> layers = block_layers.of_transformer_encoder(block)
        >>> tuple(layers.ffn_up.kernel.shape) == tuple(
        ...     layers.ffn_down.kernel.shape[::-1]
        ... )
        True
    """

    query: Any
    key: Any
    value: Any
    output: Any
    ffn_up: Any
    ffn_down: Any
    attention_norm: Any
    ffn_norm: Any
    num_heads: int

    def kernels(self) -> dict[str, tuple[Tensor, int]]:
        """Returns the kernels of attention's projections, by name.

        Returns:
            Dict from the name of a projection to a pair: the kernel, and the
            number of leading axes of the kernel that are axes of the input.
        """
        kernels = {name: getattr(self, name).kernel for name in PROJECTIONS}
        return {
            # DeBERTa's output kernel has one input axis, others have two.
            name: (kernel, len(kernel.shape) - 1 if name == "output" else 1)
            for name, kernel in kernels.items()
        }


def of_transformer_encoder(block: Any) -> BlockLayers:
    """Returns the `BlockLayers` of a KerasHub `TransformerEncoder`.

    Args:
        block: The block, or another layer with the same sublayers.
    """
    attention = block._self_attention_layer
    return BlockLayers(
        query=attention._query_dense,
        key=attention._key_dense,
        value=attention._value_dense,
        output=attention._output_dense,
        ffn_up=block._feedforward_intermediate_dense,
        ffn_down=block._feedforward_output_dense,
        attention_norm=block._self_attention_layer_norm,
        ffn_norm=block._feedforward_layer_norm,
        num_heads=attention.num_heads,
    )
