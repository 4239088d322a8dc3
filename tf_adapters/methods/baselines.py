"""Baselines without slots, which only select encoder variables to train.

They share one file because each is only a few lines long.
"""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.layers import mixout as mixout_lib
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register

if TYPE_CHECKING:
    import keras


@register("full")
@dataclasses.dataclass(frozen=True)
class Full(Method):
    """Fine-tunes every variable of the encoder (Devlin et al. 2019).

    Attributes:
        mixout: Rate of mixout; 0.9 in He et al. 2021, table 7. Defaults to 0.
            Any other rate replaces all dropout by mixout. See
            `tf_adapters.layers.mixout`.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Full(mixout=0.9), head)
        >>> len(model.trainable_weights) > len(model.non_trainable_weights)
        True
    """

    mixout: float = 0.0

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        return encoder.used_variables()

    def reparameterize(
        self, model: Any
    ) -> "list[tuple[keras.Variable, keras.layers.Layer]]":
        read = {id(v) for v in model.encoder_variables_read()}
        kernels = [
            (kernel, num_input_axes)
            for kernel, num_input_axes in _kernels_after_dropout(model.encoder)
            if id(kernel) in read
        ]
        return mixout_lib.mixout_pairs(self.mixout, kernels, model)


def _kernels_after_dropout(encoder: Any) -> "list[tuple[keras.Variable, int]]":
    """Returns the kernels of the encoder whose input comes from a dropout.

    The result is a list of pairs of a kernel and its number of input axes. A
    kernel that blocks share appears once. Dropout is applied to the embeddings,
    before the first block or the projection of the embeddings; after each
    sublayer, before the kernels of the next sublayer; and to the attention
    weights, before the output projection. There is no dropout before the second
    kernel of the feed-forward network.
    """
    in_blocks = [
        pair
        for block in encoder.blocks
        for name, pair in block.kernels().items()
        if name != "ffn_down"
    ]
    before, after = (
        [] if layer is None else [(layer.kernel, 1)]
        for layer in (encoder.projection, encoder.pooler)
    )
    found = [*before, *in_blocks, *after]
    return list({id(kernel): (kernel, n) for kernel, n in found}.values())


@register("head_only")
@dataclasses.dataclass(frozen=True)
class HeadOnly(Method):
    """Trains only the head ("Head" in Pfeiffer et al. 2021, table 1).

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.HeadOnly(), head)
        >>> [variable.path for variable in model.trainable_weights]
        ['head/kernel', 'head/bias']
    """


@register("top_layers")
@dataclasses.dataclass(frozen=True)
class TopLayers(Method):
    """Fine-tunes the top `k` blocks (Houlsby et al. 2019, section 3.3).

    Attributes:
        k: Number of blocks, counted from the top. If `k` is the number of
            blocks of the encoder, everything is fine-tuned, including the
            embeddings, as in the paper.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.TopLayers(k=1), head)
        >>> model.method.k
        1
    """

    k: int = 1

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        if not 1 <= self.k <= shape.num_blocks:
            raise UserError(
                "`k` must lie between 1 and the encoder's "
                f"{shape.num_blocks} blocks. Received: k={self.k}"
            )
        return super().make_slots(shape)

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        if self.k == len(encoder.blocks):
            return encoder.used_variables()
        variables = encoder.pooler_variables()
        blocks = [block.block for block in encoder.blocks]
        below = {id(block) for block in blocks[: -self.k]}
        if any(id(block) in below for block in blocks[-self.k :]):
            raise UserError(
                "`top_layers` cannot train the weights of the top blocks only: "
                "blocks below share them, as ALBERT's do. Use another method, "
                f"or k={len(blocks)}. Received: k={self.k}"
            )
        for block in {id(block): block for block in blocks[-self.k :]}.values():
            variables = variables + block.weights
        return variables


@register("layer_norm")
@dataclasses.dataclass(frozen=True)
class LayerNorm(Method):
    """Trains all layer norms (Houlsby et al. 2019, section 3.4).

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.LayerNorm(), head)
        >>> sorted({variable.name for variable in model.trainable_weights})
        ['beta', 'bias', 'gamma', 'kernel']
    """

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        return encoder.norm_variables()


@register("bitfit")
@dataclasses.dataclass(frozen=True)
class BitFit(Method):
    """Trains all biases, including the norms' offsets (arXiv:2106.10199).

    Raises a `UserError` if the encoder has no biases, such as ModernBERT.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.BitFit())
        >>> sorted({variable.name for variable in model.trainable_weights})
        ['beta', 'bias']
    """

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        """Returns all variables called `bias` or `beta`."""
        found = [
            variable
            for variable in encoder.used_variables()
            if variable.name in ("bias", "beta")
        ]
        if not found:
            raise UserError(
                "BitFit trains biases, and an encoder of the class "
                f"{type(encoder.backbone).__name__} has none. Train its norms "
                "with the method layer_norm, or add weights, as lora does."
            )
        return found
