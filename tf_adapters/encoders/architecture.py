"""Describes how the backbones of a family are computed."""

from collections.abc import Callable
import dataclasses
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.encoders import block_layers
from tf_adapters.layers.attention import NoPositions

if TYPE_CHECKING:
    import keras

    from tf_adapters.encoders.encoder import Encoder


def _own_blocks(backbone: Any) -> "list[keras.layers.Layer]":
    return list(backbone.transformer_layers)


def _no_positions(encoder: "Encoder") -> list[NoPositions]:
    return [NoPositions()] * encoder.backbone.num_layers


@dataclasses.dataclass(frozen=True)
class Architecture:
    """Describes how to compute the backbones of a family, such as BERT.

    The defaults suit most families.

    Attributes:
        activation: Activation that the backbone's own `call` uses, a name in
            `tf_adapters.layers.activations`.
        layer_norm_epsilon: Epsilon that the backbone's own `call` uses.
        has_pooler: Whether the family's checkpoints have a trained pooler.
        masked_lm_activation: Activation of the family's masked language
            modeling head. `None` (default) for the activation of the blocks.
        counts_positions: Whether positions are counted from a text's first
            token instead of the first column. If `True`, the backbone's layer
            `embeddings` holds the token and the position embeddings.
        blocks: Function from a backbone to the list of its blocks, by depth.
        layers: Function from a block to its `BlockLayers`. Defaults to the
            function for KerasHub's `TransformerEncoder`.
        positions: Function from an `Encoder` to a list with one object per
            block, each with a method `relate`, as in
            `tf_adapters.layers.attention.NoPositions`.
        norms: `"post"` (default) if a block's norms follow its residual sums,
            or `"pre"` if they come before its sublayers.
        has_gate: Whether feed-forward networks are gated: the activated first
            half of `ffn_up`'s outputs is multiplied by the second half.
        embedding_norm: Name of the backbone's layer norm of the embeddings.
        final_norm: Name of the backbone's layer norm after the last block.
            `None` (default) if there is none.

    Examples:
        >>> from tf_adapters import encoders
        >>> encoders.Architecture("gelu", 1e-12, norms="pre").embedding_norm
        'embeddings_layer_norm'
    """

    activation: str
    layer_norm_epsilon: float
    has_pooler: bool = False
    masked_lm_activation: str | None = None
    counts_positions: bool = False
    blocks: Callable[..., Any] = _own_blocks
    layers: Callable[..., Any] = block_layers.of_transformer_encoder
    positions: Callable[..., Any] = _no_positions
    norms: typing.Literal["post", "pre"] = "post"
    has_gate: bool = False
    embedding_norm: str = "embeddings_layer_norm"
    final_norm: str | None = None
