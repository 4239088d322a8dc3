"""One block of a KerasHub encoder, to which a method can attach slots.

`AdaptedBlock` reads the kernels and biases of a block's layers and calls the
slots that a method attached to it: see `tf_adapters.layers.slot`. The code is
the same for all families of encoders; an `Architecture` describes how they
differ.

Weights stay in float32. They are cast on use to the dtype of the token vectors,
which follows from the backbone's dtype policy. Keras's own casting is therefore
off in all layers of this library (`autocast=False`).
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.types import Tensor
from tf_adapters.layers import activations
from tf_adapters.layers import descriptions
from tf_adapters.layers import own_gradients
from tf_adapters.layers.attention import NoPositions
from tf_adapters.layers.attention import attention
from tf_adapters.layers.banks.norms import BankNorm
from tf_adapters.layers.banks.norms import norm_weights
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.norm_place import NORM_PLACES
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.quantized import kernel_of
from tf_adapters.layers.slot import BLOCK_PLACES
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import dropout

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder


class AdaptedBlock(Float32Layer):
    """Runs one transformer block of a backbone, and the slots attached to it.

    Args:
        block: A built block of the encoder's backbone.
        slots: Dict from a place, one of `slot.BLOCK_PLACES`, to its `Slot`.
        encoder: The `Encoder`, which defines activation, epsilon and dropout.
        use_dropout: Whether to apply the block's own dropout in training.
            Defaults to `True`.
        norms: Iterator of `BankNorm`s. The block takes one to replace each of
            its norms. If the iterator is empty (default), the block keeps its
            own norms.
        positions: Object that applies positions in attention, with the same
            methods as `tf_adapters.layers.attention.NoPositions`, the default.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        block: keras.layers.Layer,
        slots: dict[str, Slot],
        encoder: Encoder,
        use_dropout: bool = True,
        norms: Iterable[BankNorm] = (),
        positions: Any = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        architecture = encoder.architecture
        self._norm_place = NORM_PLACES[architecture.norms]
        for place in slots:
            check_known(
                "position in a block",
                place,
                self._norm_place.places,
                hint=self._norm_place.hint,
            )
        self.block = block
        self.block_layers = architecture.layers(block)
        self.positions = positions or NoPositions()
        # One attribute per slot: attribute names appear in `.keras` files.
        for place, slot in slots.items():
            setattr(self, _attribute(place), slot)
        self._in_use = frozenset(slots)
        norms = iter(norms)
        self.attention_norm = self.block_layers.attention_norm
        if self.attention_norm is not None:
            self.attention_norm = next(norms, self.attention_norm)
        self.ffn_norm = next(norms, self.block_layers.ffn_norm)
        self.epsilon = encoder.layer_norm_epsilon
        rates = (
            encoder.hidden_dropout,
            encoder.attention_dropout,
            *encoder.output_dropouts,
        )
        (
            self.hidden_dropout,
            self.attention_dropout,
            self.attention_output_dropout,
            self.ffn_output_dropout,
        ) = rates if use_dropout else (0, 0, 0, 0)
        self._activation = activations.get_activation(encoder.activation)
        if architecture.has_gate:
            self._activation = activations.gated(self._activation)
        self.built = True

    @property
    def slots(self) -> dict[str, Slot]:
        """Dict from place to slot, without the slots that are disabled."""
        return {
            place: getattr(self, _attribute(place))
            for place in BLOCK_PLACES
            if place in self._in_use
        }

    def _slot(self, place: str) -> Slot | None:
        """Returns the slot at a place unless it is disabled or folded."""
        slot = self.slots.get(place)
        return None if slot is None or slot.is_folded else slot

    @property
    def places_in_use(self) -> frozenset[str]:
        """The places whose slots are not disabled."""
        return self._in_use

    @places_in_use.setter
    def places_in_use(self, places: Iterable[str]) -> None:
        self._in_use = frozenset(places)

    def call(
        self,
        x: Tensor,
        context: Context,
        first_token_only: bool = False,
        training: bool | None = None,
    ) -> tuple[Tensor, dict[str, dict[str, Tensor]]]:
        """Returns the block's output, and a dict from place to a probe dict.

        A probe dict has the values that a slot reports, by name. At the place
        `"attention_norm"`, `output` has the hidden states before the FFN.

        Args:
            x: `(batch, tokens, width)`.
            context: `Context` with `padding_mask`, `adapter_rows` and `seeds`.
            first_token_only: Whether to compute position 0 only. The result is
                exact, because keys and values still include every token.
            training: Whether to run the slots in training mode.
        """
        with own_gradients.own_gradients(training):
            return self._computed(x, context, first_token_only, training)

    def _computed(
        self,
        x: Tensor,
        context: Context,
        first_token_only: bool,
        training: bool | None,
    ) -> tuple[Tensor, dict[str, dict[str, Tensor]]]:
        """Returns the block's output and probes; see `call`."""
        residual = x[:, :1] if first_token_only else x
        context = dataclasses.replace(context, block_input=x, residual=residual)
        probes = {}
        read = self._read("attention", x, context)
        queries_from = read[:, :1] if first_token_only else read
        attended = self._attend(queries_from, read, context, training)
        attended = dropout(
            attended, self.attention_output_dropout, context.seeds
        )
        x = self._add("attention", attended, context, training, probes)
        probes["attention_norm"] = {"output": x}
        context = dataclasses.replace(context, residual=x)
        read = self._read("ffn", x, context)
        intermediate = self._project(
            "ffn_up", read, context, training, self._activation
        )
        context = dataclasses.replace(context, intermediate=intermediate)
        output = self._project("ffn_down", intermediate, context, training)
        output = dropout(output, self.ffn_output_dropout, context.seeds)
        x = self._add("ffn", output, context, training, probes)
        return x, probes

    def computation(self) -> dict[str, Any]:
        """Returns all that determines the block's function but its weights.

        Of the backbone's layers, the block reads only the weights.
        """
        own = descriptions.attributes(self)
        del own["block"]
        layers = vars(own.pop("block_layers"))
        own["block_layers"] = {
            name: (layer.dtype_policy.name, layer.weights)
            if isinstance(layer, keras.layers.Layer)
            else layer
            for name, layer in layers.items()
        }
        return own

    def kernels(self) -> dict[str, tuple[keras.Variable, int]]:
        """Returns a dict from projection to (kernel, number of input axes)."""
        return self.block_layers.kernels()

    def norms(self) -> list[keras.layers.Layer]:
        """Returns the layer norms of attention (if it has one) and the FFN."""
        norms = [self.attention_norm, self.ffn_norm]
        return [norm for norm in norms if norm is not None]

    def _project(
        self,
        name: str,
        x: Tensor,
        context: Context,
        training: bool | None,
        activation: Callable[[Tensor], Tensor] | None = None,
    ) -> Tensor:
        """Applies the projection `name`, and its slot if it has one, to `x`."""
        layer = getattr(self.block_layers, name)
        kernel = kernel_of(layer, x.shape[-1])
        bias = layer.bias
        if bias is not None:
            bias = ops.reshape(bias, (kernel.shape[-1],))
        slot = self._slot(name)
        if slot is None:
            return dense(x, kernel, bias, activation)
        y = slot(
            x,
            project=lambda value: dense(value, kernel, bias),
            context=context,
            training=training,
        )
        return y if activation is None else activation(y)

    def _norm(self, sublayer: str, context: Context) -> Callable[..., Tensor]:
        """Returns the norm of a sublayer, or else the identity function.

        The function is `norm(x, adapter_rows)`. The rows default to those of
        the context.
        """
        norm = getattr(self, f"{sublayer}_norm")
        if norm is None:
            return lambda value, rows=None: value

        def apply(value: Tensor, rows: Any = context.adapter_rows) -> Tensor:
            return layer_norm(value, *norm_weights(norm, rows), self.epsilon)

        return apply

    def _read(self, sublayer: str, x: Tensor, context: Context) -> Tensor:
        """Returns a sublayer's input: `x`, or in pre-norm blocks `norm(x)`."""
        return self._norm_place.read(x, self._norm(sublayer, context))

    def _add(
        self,
        sublayer: str,
        x: Tensor,
        context: Context,
        training: bool | None,
        probes: dict[str, dict[str, Tensor]],
    ) -> Tensor:
        """Applies slots, residual connection and norm to a sublayer output."""
        norm = self._norm(sublayer, context)
        context = dataclasses.replace(
            context, norm=self._norm_place.for_slot(norm)
        )
        place = f"after_{sublayer}"
        slot = self._slot(place)
        if slot is not None:
            x, probes[place] = slot(x, context=context, training=training)
        y = self._norm_place.write(x + context.residual, norm)
        place = f"after_{sublayer}_norm"
        slot = self._slot(place)
        if slot is not None:
            context = dataclasses.replace(context, sublayer_output=x)
            y, probes[place] = slot(y, context=context, training=training)
        return y

    def _attend(
        self,
        queries_from: Tensor,
        keys_from: Tensor,
        context: Context,
        training: bool | None,
    ) -> Tensor:
        query = self._project("query", queries_from, context, training)
        key = self._project("key", keys_from, context, training)
        value = self._project("value", keys_from, context, training)
        mask = context.padding_mask
        query, key, bias = self.positions.relate(
            query,
            key,
            lambda name, x: self._project(
                name, x, _of_positions(x, context), training
            ),
            lambda x: dropout(x, self.hidden_dropout, context.seeds),
        )
        slot = self._slot("keys_and_values")
        if slot is not None:
            key, value, mask = slot(
                key, values=value, context=context, training=training
            )
            bias = _without_positions(bias, ops.shape(key)[1])
        mixed = attention(
            query,
            key,
            value,
            self.block_layers.num_heads,
            mask,
            self.attention_dropout,
            context.seeds,
            bias,
        )
        return self._project("output", mixed, context, training)


def _of_positions(table: Tensor, context: Context) -> Context:
    """Returns a context for a table of positions, which has no padding.

    Args:
        table: `(1, positions, width)`.
        context: `Context` of the text.
    """
    mask = ops.ones(ops.shape(table)[:2], "int32")
    return dataclasses.replace(context, padding_mask=mask)


def _without_positions(
    bias: Tensor | None, num_keys: int | Tensor
) -> Tensor | None:
    """Pads an attention bias with zeros for keys inserted before the text."""
    if bias is None:
        return None
    added = num_keys - ops.shape(bias)[-1]
    return ops.pad(bias, ((0, 0), (0, 0), (0, 0), (added, 0)))


def _attribute(place: str) -> str:
    # Keras layers already have an attribute `output`.
    return place if place.startswith("after") else f"{place}_slot"
