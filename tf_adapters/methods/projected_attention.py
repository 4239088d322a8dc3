"""Projected attention layers: Stickland and Murray 2019, arXiv:1902.02671."""

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import initializers
from tf_adapters.layers.attention import attention
from tf_adapters.layers.bottleneck import Bottleneck
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotGivenLayers
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register

if TYPE_CHECKING:
    from tf_adapters.layers.stateless_seeds import StatelessSeeds


@register("projected_attention")
@dataclasses.dataclass(frozen=True)
class ProjectedAttention(Method):
    """Adds a small self-attention in parallel to each block.

    Each block computes `norm(x + residual + f(W_up MHA(W_down h)))`, where `h`
    is the block's input. All blocks share `W_down` and `W_up`, so `L` blocks
    train `2dm + d + m + L (3 m^2 + 2 m)` weights. The encoder is frozen,
    unless it trains with `MultiTask`, as in the paper.

    Attributes:
        units: Width `m` of the small attention; 204 in the paper and its code.
        num_heads: Number of attention heads; 12 in the paper, 6 in its code.
        activation: The function `f`. `"linear"` (default) as in the paper's
            formula, or `"gelu"` as in its code (Bert-n-Pals, modeling.py).
        attention_dropout: Dropout rate of the attention weights; 0.1 as in
            BERT.
        init_stddev: Standard deviation of the normal distribution from which
            all kernels start; 0.02 as in BERT.
        leave_out: Indices of blocks without the attention.

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

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        projections = Projections(
            self.units, self.init_stddev, name="shared_projections"
        )

        def make(place: str, name: str) -> "ProjectedAttentionSlot":
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
    """Slot that computes `x + f(up(attention(down(block_input))))`.

    Args:
        projections: `Projections`, possibly shared with other blocks.
        attention: `SmallAttention`.
        activation: Name of `f`.
        **kwargs: See `keras.layers.Layer`.
    """

    arguments = ("projections", "attention", "activation")

    def __init__(
        self,
        projections: "Projections",
        attention: "SmallAttention",
        activation: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.projections = projections
        self.attention = attention
        self.activation = activation
        self._activation = activations.get_activation(activation)

    def call(
        self,
        x: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, Tensor]]:
        tokens = self.projections.down(context.block_input)
        # The last block may have to compute the first positions only.
        mixed = self.attention(
            tokens[:, : ops.shape(x)[1]],
            tokens,
            context.padding_mask,
            seeds=context.seeds,
        )
        return x + self.projections.up(mixed, self._activation), {}


@keras.saving.register_keras_serializable("tf_adapters")
class Projections(Bottleneck):
    """Projects token vectors to a small width and back.

    The layer has `2dm + d + m` weights for vectors of width `d`. Blocks can
    share it.

    Args:
        units: Integer. The small width `m`.
        init_stddev: Positive float. Standard deviation of both initial kernels;
            the biases start at zero. Defaults to 0.02.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self, units: int, init_stddev: float = 0.02, **kwargs: Any
    ) -> None:
        super().__init__(units, "linear", "normal", init_stddev, **kwargs)

    def down(self, x: Tensor) -> Tensor:
        """Projects vectors of width `d` to the small width `m`."""
        return dense(x, self.down_kernel, self.down_bias)

    def up(
        self, x: Tensor, activation: Callable[[Tensor], Tensor] | None = None
    ) -> Tensor:
        """Projects vectors of width `m` to width `d`; applies `activation`."""
        return dense(x, self.up_kernel, self.up_bias, activation)


@keras.saving.register_keras_serializable("tf_adapters")
class SmallAttention(Float32Layer):
    """Multi-head self-attention without an output projection.

    The layer has `3 m^2 + 2 m` weights. The keys have no bias, because a bias
    would shift all logits of a query equally and cancel in the softmax.

    Args:
        units: Integer. Width `m` of the vectors.
        num_heads: Integer that divides `units`.
        dropout_rate: Dropout rate of the attention weights in training.
            Defaults to 0.
        init_stddev: Positive float. Standard deviation of all initial kernels;
            the biases start at zero. Defaults to 0.02.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        queries: `(batch, queries, m)`. Vectors that attend to `tokens`.
        tokens: `(batch, tokens, m)`. Vectors that are attended to.
        padding_mask: `(batch, tokens)`, 0 at padding.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Tensor of the shape of `queries`.

    Raises:
        UserError: If `num_heads` does not divide `units`.
    """

    def __init__(
        self,
        units: int,
        num_heads: int,
        dropout_rate: float = 0.0,
        init_stddev: float = 0.02,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if num_heads < 1 or units % num_heads:
            raise UserError(
                "Invalid value for argument `num_heads`: expected a number of "
                f"heads that divides units={units}. Received: "
                f"num_heads={num_heads}"
            )
        self.units = units
        self.num_heads = num_heads
        self.dropout_rate = dropout_rate
        self.init_stddev = init_stddev

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        for name in ("query", "key", "value"):
            kernel = self.add_weight(
                (self.units, self.units),
                initializers.random_normal(self.init_stddev),
                name=f"{name}_kernel",
            )
            setattr(self, f"{name}_kernel", kernel)
        self.query_bias = self.add_weight(
            (self.units,), "zeros", name="query_bias"
        )
        self.value_bias = self.add_weight(
            (self.units,), "zeros", name="value_bias"
        )

    def call(
        self,
        queries: Tensor,
        tokens: Tensor,
        padding_mask: Tensor,
        seeds: "StatelessSeeds | None" = None,
    ) -> Tensor:
        return attention(
            dense(queries, self.query_kernel, self.query_bias),
            dense(tokens, self.key_kernel),
            dense(tokens, self.value_kernel, self.value_bias),
            self.num_heads,
            ops.convert_to_tensor(padding_mask),
            self.dropout_rate,
            seeds,
        )
