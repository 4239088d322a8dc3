"""Describes how a family of backbones differs from the others."""

from collections.abc import Callable
import dataclasses

from tf_adapters.layers.attention import NoPositions


def _own_blocks(backbone):
    return list(backbone.transformer_layers)


def _no_positions(encoder):
    return NoPositions()


@dataclasses.dataclass(frozen=True)
class Architecture:
    """How a family's backbones are computed. Defaults suit most, as BERT.

    Attributes:
        activation: Activation of the backbone's own `call`, a name in
            `tf_adapters.layers.activations`.
        layer_norm_epsilon: Epsilon of the backbone's own `call`.
        has_pooler: Whether the family's checkpoints have a trained pooler.
        masked_lm_activation: Activation of the family's masked language
            modeling head. `None` (default) for the activation of the blocks.
        counts_positions: Whether positions are counted from a text's first
            token instead of the first column. If `True`, the layer
            `embeddings` holds the tables of tokens and positions.
        blocks: Function from a backbone to the list of its blocks, by depth.
        positions: Function from an `Encoder` to an object with the method of
            `tf_adapters.layers.attention.NoPositions`, which all its blocks
            share.
    """

    activation: str
    layer_norm_epsilon: float
    has_pooler: bool = False
    masked_lm_activation: str | None = None
    counts_positions: bool = False
    blocks: Callable = _own_blocks
    positions: Callable = _no_positions
