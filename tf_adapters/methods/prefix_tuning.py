"""Prefix tuning: Li and Liang 2021, arXiv:2101.00190."""

from collections.abc import Sequence
import dataclasses
import typing
from typing import Any

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import initializers
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.banks.prefixes import BankPrefix
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.gate import TextGate
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot_of_layers import SlotGivenLayers
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.methods.registry import register


@register("prefix_tuning")
@dataclasses.dataclass(frozen=True)
class PrefixTuning(Method):
    """Prepends trained keys and values to those of the text, in each block.

    The encoder is frozen. Let `P` be the length of the prefix, `L` the number
    of blocks with a prefix and `d` the width. A flat prefix trains `2 P L d`
    weights. A prefix that is computed by a network of `m` hidden units trains
    `P d + (d + 1) m + (m + 1) 2 L d` weights, although inference needs only the
    `2 P L d` outputs of the network.

    Attributes:
        prefix_length: Number of vectors `P`; 30 in the `adapters` library.
        hidden_units: Hidden units `m` of the network that computes the vectors;
            512 in the library. 0 selects a flat prefix, in which the vectors
            themselves train.
        activation: Activation of the network; tanh in the library.
        dropout: Rate of dropout on the vectors. Defaults to 0.
        use_gating: Whether to multiply the vectors by a gate for each text
            (UniPELT).
        form: `"adapterhub"` (default): the text's positions do not change.
            `"peft"`: they are shifted by the prefix's length, as in PEFT, which
            passes the prefix to BERT as past keys and values.
        leave_out: Indices of blocks without a prefix.

    Examples:
        >>> flat = methods.PrefixTuning(prefix_length=5, hidden_units=0)
        >>> tuple(tf_adapters.adapt(encoder, flat, head)(features).shape)
        (2, 2)
    """

    prefix_length: int = 30
    hidden_units: int = 512
    activation: activations.Activation = "tanh"
    dropout: float = 0.0
    use_gating: bool = False
    form: typing.Literal["adapterhub", "peft"] = "adapterhub"
    leave_out: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prefix_length < 1 or self.hidden_units < 0:
            raise UserError(
                "A prefix has one or more vectors, and its network 0 or more "
                f"hidden units. Received: prefix_length={self.prefix_length}, "
                f"hidden_units={self.hidden_units}"
            )

    @property
    def position_offset(self) -> int:
        """The number of positions by which the text is shifted."""
        return self.prefix_length if self.form == "peft" else 0

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Returns each block's slots: a list of dicts from place to slot."""
        kept = [i for i, k in enumerate(self.kept_blocks(shape)) if k]
        vectors = PrefixVectors(
            self.prefix_length,
            len(kept),
            shape.width,
            self.hidden_units,
            self.activation,
            name="shared_prefix",
        )
        # Built here: the first slot would otherwise add its own name to the
        # paths of these shared variables.
        vectors.build()
        slots = super().make_slots(shape)
        for number, block in enumerate(kept):
            slots[block]["keys_and_values"] = Prefix(
                vectors,
                number,
                self.dropout,
                self.use_gating,
                name=f"block_{block}_keys_and_values",
            )
        return slots


@keras.saving.register_keras_serializable("tf_adapters")
class PrefixVectors(Float32Layer):
    """Computes the keys and values of the prefixes of all blocks.

    Args:
        length: Integer. Length `P` of the prefix.
        num_blocks: Integer. Number `L` of blocks with a prefix.
        width: Integer. Width `d` of the vectors.
        hidden_units: Integer. Hidden units `m` of the network, or 0 for a flat
            prefix.
        activation: Name of `f` in the network, `f(E W_1 + b_1) W_2 + b_2`.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        length: int,
        num_blocks: int,
        width: int,
        hidden_units: int,
        activation: str,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.length = length
        self.num_blocks = num_blocks
        self.width = width
        self.hidden_units = hidden_units
        self._activation = activations.get_activation(activation)

    def build(self, input_shape: Sequence[Any] | None = None) -> None:
        outputs = 2 * self.num_blocks * self.width
        normal = initializers.random_normal(0.02)
        if not self.hidden_units:
            self.vectors = self.add_weight(
                (self.length, outputs), normal, name="vectors"
            )
            return
        self.embeddings = self.add_weight(
            (self.length, self.width), normal, name="embeddings"
        )
        self.down_kernel = self.add_weight(
            (self.width, self.hidden_units), normal.clone(), name="down_kernel"
        )
        self.down_bias = self.add_weight(
            (self.hidden_units,), "zeros", name="down_bias"
        )
        self.up_kernel = self.add_weight(
            (self.hidden_units, outputs), normal.clone(), name="up_kernel"
        )
        self.up_bias = self.add_weight((outputs,), "zeros", name="up_bias")

    def call(self, block: int) -> tuple[Tensor, Tensor]:
        """Returns the prefix of a block: keys and values, each `(P, d)`.

        Args:
            block: Integer. Index of the block among those with a prefix.
        """
        first = 2 * block * self.width
        columns = slice(first, first + 2 * self.width)
        if not self.hidden_units:
            both = ops.convert_to_tensor(self.vectors)[:, columns]
        else:
            hidden = dense(
                ops.convert_to_tensor(self.embeddings),
                self.down_kernel,
                self.down_bias,
                self._activation,
            )
            kernel = ops.convert_to_tensor(self.up_kernel)[:, columns]
            bias = ops.convert_to_tensor(self.up_bias)[columns]
            both = dense(hidden, kernel, bias)
        return both[:, : self.width], both[:, self.width :]


@keras.saving.register_keras_serializable("tf_adapters")
class Prefix(SlotGivenLayers):
    """Slot that prepends trained keys and values to those of the text.

    Args:
        vectors: `PrefixVectors`, shared by all blocks.
        block: Integer. Index of the block among those with a prefix.
        dropout_rate: Rate of dropout on the vectors in training. Defaults to 0.
        use_gating: Whether to multiply the vectors by a `TextGate`. Defaults
            to `False`.
        **kwargs: See `keras.layers.Layer`.
    """

    arguments = ("vectors", "block", "dropout_rate", "use_gating")

    def __init__(
        self,
        vectors: PrefixVectors,
        block: int,
        dropout_rate: float = 0.0,
        use_gating: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.vectors = vectors
        self.block = block
        self.dropout_rate = dropout_rate
        self.use_gating = use_gating
        self.gate = TextGate(name="gate") if use_gating else None

    def call(
        self,
        keys: Tensor,
        values: Tensor,
        context: Context,
        training: bool | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        added = [
            self._of_each_text(vectors, keys, context)
            for vectors in self.vectors.call(self.block)
        ]
        if self.gate is not None:
            gate = self.gate(context.block_input, context.padding_mask)
            added = [vectors * gate for vectors in added]
        mask = ops.pad(
            context.padding_mask,
            ((0, 0), (self.vectors.length, 0)),
            constant_values=1,
        )
        keys = ops.concatenate([added[0], keys], axis=1)
        return keys, ops.concatenate([added[1], values], axis=1), mask

    def bank_parts(self) -> list[Part]:
        """Returns the prefix's keys and values as a bank stores them.

        The result is a list of one `Part`.

        Raises:
            UserError: If a gate multiplies the keys and values.
        """
        if self.use_gating:
            raise UserError("A bank has no gates. Received: use_gating=True.")
        keys, values = self.vectors.call(self.block)
        mask = ops.ones((self.vectors.length,))
        arrays = {"keys": keys, "values": values, "mask": mask}
        return [BankPrefix.part(arrays)]

    def _of_each_text(
        self, vectors: Tensor, keys: Tensor, context: Context
    ) -> Tensor:
        vectors = ops.cast(vectors, keys.dtype)[None]
        repeated = ops.repeat(vectors, ops.shape(keys)[0], axis=0)
        return dropout(repeated, self.dropout_rate, context.seeds)
