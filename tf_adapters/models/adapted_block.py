"""One block of a KerasHub encoder, with places for a method's slots.

`AdaptedBlock` reads the kernels and biases of a block's sublayers and calls the
slots that a method attached to it: see `tf_adapters.layers.slot`.

Weights stay in float32. They are cast on use to the dtype of the token vectors,
which follows from the backbone's dtype policy. Keras's own casting is therefore
off in all layers of this library (`autocast=False`).
"""

import dataclasses
import math

from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.layers import activations
from tf_adapters.layers.attention import NoPositions
from tf_adapters.layers.attention import attention
from tf_adapters.layers.bank import norm_weights
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.slot import BLOCK_PLACES
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.models import block_layers


class AdaptedBlock(Float32Layer):
    """Runs one post-norm transformer block of a backbone, with slots.

    Args:
        block: A built KerasHub `TransformerEncoder` with norms after the
            residual, or a layer with the same sublayers.
        slots: Dict from a place, one of `slot.BLOCK_PLACES`, to its `Slot`.
        encoder: The `Encoder`, which defines activation, epsilon and dropout.
        use_dropout: Whether to apply the block's own dropout in training.
            Defaults to `True`.
        norms: The `BankNorm`s after attention and after the feed-forward
            network, which replace the block's own norms, or `None` (default).
        positions: How positions enter attention: an object with the method of
            `tf_adapters.layers.attention.NoPositions`, which is the default.
        **kwargs: See `keras.layers.Layer`.
    """

    def __init__(
        self,
        block,
        slots,
        encoder,
        use_dropout=True,
        norms=None,
        positions=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        for place in slots:
            check_known("position in a block", place, BLOCK_PLACES)
        self.block = block
        self.positions = positions or NoPositions()
        # One attribute per slot: their names appear in `.keras` files.
        for place, slot in slots.items():
            setattr(self, _attribute(place), slot)
        self._in_use = frozenset(slots)
        self.attention_norm, self.ffn_norm = norms or block_layers.norms(block)
        self.epsilon = encoder.layer_norm_epsilon
        self.hidden_dropout = encoder.hidden_dropout if use_dropout else 0
        self.ffn_output_dropout = (
            encoder.ffn_output_dropout if use_dropout else 0
        )
        self.attention_dropout = encoder.attention_dropout if use_dropout else 0
        self.attention_output_dropout = (
            encoder.attention_output_dropout if use_dropout else 0
        )
        self._num_heads = block_layers.num_heads(block)
        self._activation = activations.get_activation(encoder.activation)
        self.built = True

    @property
    def slots(self):
        """Dict from place to slot, without the slots that are left out."""
        return {
            place: getattr(self, _attribute(place))
            for place in BLOCK_PLACES
            if place in self._in_use
        }

    def _slot(self, place):
        """Returns the slot that is active at a place, or `None`."""
        slot = self.slots.get(place)
        return None if slot is None or slot.is_merged else slot

    @property
    def places_in_use(self):
        """The places with active slots. If empty, the block is unadapted."""
        return self._in_use

    @places_in_use.setter
    def places_in_use(self, places):
        self._in_use = frozenset(places)

    def call(self, x, context, first_token_only=False, training=None):
        """Returns the block's output, and the probes of its slots and norm.

        Args:
            x: `(batch, tokens, width)`.
            context: `Context` with `padding_mask`, `adapter_ids` and `seeds`.
            first_token_only: Whether to compute position 0 only. The result is
                exact, because keys and values still include every token.
            training: Whether to run the slots in training mode.
        """
        residual = x[:, :1] if first_token_only else x
        context = dataclasses.replace(context, block_input=x, residual=residual)
        probes = {}
        attended = self._attend(residual, x, context, training)
        attended = dropout(
            attended, self.attention_output_dropout, context.seeds
        )
        x = self._add_and_norm("attention", attended, context, training, probes)
        probes["attention_norm"] = {"output": x}
        context = dataclasses.replace(context, residual=x)
        intermediate = self._project(
            "ffn_up", x, context, training, self._activation
        )
        context = dataclasses.replace(context, intermediate=intermediate)
        output = self._project("ffn_down", intermediate, context, training)
        output = dropout(output, self.ffn_output_dropout, context.seeds)
        x = self._add_and_norm("ffn", output, context, training, probes)
        return x, probes

    def kernels(self):
        """Returns the projections' kernels; see `block_layers.kernels`."""
        return block_layers.kernels(self.block)

    def _project(self, name, x, context, training, activation=None):
        """Returns a projection of `x`, modified by its slot if it has one."""
        layer = block_layers.projections(self.block)[name]
        outputs = math.prod(layer.bias.shape)
        kernel = ops.reshape(layer.kernel, (x.shape[-1], outputs))
        bias = ops.reshape(layer.bias, (outputs,))
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

    def _add_and_norm(self, sublayer, x, context, training, probes):
        """Returns `norm(x + residual)`, with the slots before and after it."""
        norm = getattr(self, f"{sublayer}_norm")
        gamma, beta = norm_weights(norm, context.adapter_ids)

        def normed(value):
            return layer_norm(value, gamma, beta, self.epsilon)

        context = dataclasses.replace(context, norm=normed)
        place = f"after_{sublayer}"
        slot = self._slot(place)
        if slot is not None:
            x, probes[place] = slot(x, context=context, training=training)
        y = normed(x + context.residual)
        place = f"after_{sublayer}_norm"
        slot = self._slot(place)
        if slot is not None:
            context = dataclasses.replace(context, sublayer_output=x)
            y, probes[place] = slot(y, context=context, training=training)
        return y

    def _attend(self, queries_from, keys_from, context, training):
        query = self._project("query", queries_from, context, training)
        key = self._project("key", keys_from, context, training)
        value = self._project("value", keys_from, context, training)
        mask = context.padding_mask
        query, key, bias = self.positions.relate(
            query,
            key,
            lambda name, x: self._project(name, x, context, training),
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
            self._num_heads,
            mask,
            self.attention_dropout,
            context.seeds,
            bias,
        )
        return self._project("output", mixed, context, training)


def _without_positions(bias, num_keys):
    """Pads a bias with zeros for the keys inserted before the text's."""
    if bias is None:
        return None
    added = num_keys - ops.shape(bias)[-1]
    return ops.pad(bias, ((0, 0), (0, 0), (0, 0), (added, 0)))


def _attribute(place):
    # Keras layers already have an attribute `output`.
    return place if place.startswith("after") else f"{place}_slot"
