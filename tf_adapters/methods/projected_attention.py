"""Projected attention layers: Stickland and Murray 2019, arXiv:1902.02671."""

import dataclasses

import keras
from keras import ops

from tf_adapters.layers import activations
from tf_adapters.layers.projected_attention import Projections
from tf_adapters.layers.projected_attention import SmallAttention
from tf_adapters.layers.slot_of_layers import SlotGivenLayers
from tf_adapters.methods.method import Method
from tf_adapters.methods.method import register


@register("projected_attention")
@dataclasses.dataclass(frozen=True)
class ProjectedAttention(Method):
    """A small self-attention beside each block, before its last norm.

    Each block computes `norm(x + residual + f(W_up MHA(W_down h)))` with `h`
    its own input; all blocks share `W_down` and `W_up`. Trains
    `2dm + d + m + L (3 m^2 + 2 m)` weights in `L` blocks. The encoder is
    frozen; `MultiTask` trains it too, as the paper does.

    Attributes:
        units: Small width `m`; 204 in the paper and in its code.
        num_heads: Attention heads; 12 in the paper, 6 in its code.
        activation: `f`: none (`"linear"`, default) in the paper's formula,
            `"gelu"` in its code (Bert-n-Pals, modeling.py).
        attention_dropout: Dropout rate of the attention weights; 0.1, BERT's.
        init_stddev: Of the normal that all kernels start from; 0.02, BERT's.
        leave_out: Indices of blocks without it.

    Examples:
        >>> method = methods.ProjectedAttention(units=12, num_heads=2)
        >>> tuple(tf_adapters.adapt(encoder, method, head)(features).shape)
        (2, 2)
    """

    units: int = 204
    num_heads: int = 12
    activation: activations.Activation = "linear"
    attention_dropout: float = 0.1
    init_stddev: float = 0.02
    leave_out: tuple[int, ...] = ()

    def make_slots(self, shape):
        """Returns one dict of slots for each block."""
        projections = Projections(
            self.units, self.init_stddev, name="shared_projections"
        )

        def make(place, name):
            attention = SmallAttention(
                self.units,
                self.num_heads,
                self.attention_dropout,
                self.init_stddev,
                name=name.replace(place, "attention"),
            )
            return ProjectedAttentionSlot(
                projections, attention, self.activation, name=name
            )

        return self.fill_places(shape, ["after_ffn"], make)


@keras.saving.register_keras_serializable("tf_adapters")
class ProjectedAttentionSlot(SlotGivenLayers):
    """Slot `x + f(up(attention(down(block_input))))`.

    Args:
        projections: `Projections`, possibly shared with other blocks.
        attention: `SmallAttention`.
        activation: Name of `f`.

    Call arguments:
        x: `(batch, positions, width)` output of the feed-forward network.
        context: `Context` with `block_input`, `padding_mask` and `seeds`.

    Returns:
        The sum, of the shape of `x`, and no probes.
    """

    arguments = ("projections", "attention", "activation")

    def __init__(self, projections, attention, activation, **kwargs):
        super().__init__(**kwargs)
        self.projections = projections
        self.attention = attention
        self.activation = activation
        self._activation = activations.get_activation(activation)

    def call(self, x, context=None, training=None):
        tokens = self.projections.down(context.block_input)
        # The last block may compute its first positions only.
        mixed = self.attention(
            tokens[:, : ops.shape(x)[1]],
            tokens,
            context.padding_mask,
            seeds=context.seeds,
        )
        return x + self.projections.up(mixed, self._activation), {}
