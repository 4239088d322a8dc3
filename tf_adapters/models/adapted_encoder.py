"""A KerasHub encoder to which a method can attach layers, called slots.

The embedding part of the backbone becomes a sub-model. Each block of the
backbone is run by an `AdaptedBlock`. Without slots, the outputs equal those of
the checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterable
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.encoders import quantization
from tf_adapters.layers import shared_graphs
from tf_adapters.layers.banks.norms import BankNorm
from tf_adapters.layers.banks.norms import norm_weights
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.quantized import embeddings_of
from tf_adapters.layers.quantized import kernel_of
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.methods.method import EncoderShape
from tf_adapters.models import adapted_embeddings
from tf_adapters.models import encoder_checks
from tf_adapters.models import frozen_blocks
from tf_adapters.models.adapted_block import AdaptedBlock
from tf_adapters.models.adapted_embeddings import of_text
from tf_adapters.models.rematerialization import rematerialized

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder


class AdaptedEncoder(Float32Layer):
    """An encoder to which a method's layers, called slots, are attached.

    Args:
        encoder: `tf_adapters.encoders.encoder.Encoder`.
        slots: List with one dict per block, from place to `Slot`. The same
            slot may be used several times. `None` (default) adds no slots.
        use_dropout: Whether to apply the encoder's own dropout in training, as
            in the papers. Defaults to `True`.
        norms: List of `BankNorm`s or layer norms that replace the encoder's
            norms, in the order of `norms()`, or `None` (default).
        embedding_slots: Dict from the places `"word_embeddings"` and
            `"embeddings"` to `Slot`, or `None` (default).
        position_offset: Integer. Number of positions by which texts are
            shifted, to make room for vectors before them. Defaults to 0.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        inputs: Dict of integer tensors `(batch, tokens)`: `token_ids`,
            `padding_mask`, and `segment_ids` if the backbone takes them;
            optionally `adapter_rows`, see `Context`, and `hidden_state_<n>`,
            `(batch, tokens, width)`: the output of the first `n` blocks, which
            are then not computed.
        training: Whether to run dropout and slots in training mode.
        seed: Integer tensor of shape `(2,)`, see `StatelessSeeds`. `None` for
            no dropout and no drawn gates in training.
        first_token_only: Whether the last block computes position 0 only. The
            result is exact, and `sequence_output` then has one token. Has no
            effect if hidden states or probes are returned, or if a slot of the
            last block needs all tokens.
        return_hidden_states: Whether to return the embedding output and each
            block's output.
        return_probes: Whether to return the values that the slots report.

    Returns:
        Dict with

        - `sequence_output`: `(batch, tokens, width)`.
        - `first_token_output`: `(batch, width)`. If a method inserts vectors
          before the text, it is the first of these.
        - `pooled_output`: `(batch, width)`, computed from
          `first_token_output`, if the encoder has a pooler.
        - `hidden_states`: on request, a list of `num_blocks + 1` tensors. A
          final norm is applied to the last one. If `hidden_state_<n>` is
          given, the list begins with it.
        - `probes`: on request, a list with one dict per block. It maps a place
          to a dict of the values that the slot there reports, and
          `attention_norm` to a dict with the block's hidden states after the
          attention sublayer (in post-norm blocks, after its norm) as `output`.

    Examples:
        >>> adapted = tf_adapters.AdaptedEncoder(encoder)
        >>> adapted(features)["sequence_output"].shape[0]
        2
    """

    def __init__(
        self,
        encoder: Encoder,
        slots: list[dict[str, Slot]] | None = None,
        use_dropout: bool = True,
        norms: Iterable[BankNorm] | None = None,
        embedding_slots: dict[str, Slot] | None = None,
        position_offset: int = 0,
        **kwargs: Any,
    ) -> None:
        backbone = encoder.backbone
        super().__init__(**kwargs)
        architecture = encoder.architecture
        blocks = architecture.blocks(backbone)
        slots = [{} for _ in blocks] if slots is None else slots
        embedding_slots = dict(embedding_slots or {})
        encoder_checks.check_slots(slots, embedding_slots, len(blocks))
        quantization.check_float(backbone)
        self.backbone = backbone
        self.slots = slots
        self.embedding_slots = embedding_slots
        self.position_offset = position_offset
        encoder_checks.check_positions(self)
        self.epsilon = encoder.layer_norm_epsilon
        self.hidden_dropout = encoder.hidden_dropout if use_dropout else 0
        norms = iter(norms or ())
        own_norm = backbone.get_layer(architecture.embedding_norm)
        self.embedding_norm = next(norms, own_norm)
        self.embeddings = keras.Model(
            backbone.input, own_norm.input, name="embeddings"
        )
        self.counts_positions = architecture.counts_positions
        self.projection = getattr(backbone, "embeddings_projection", None)
        self.pooler = backbone.pooled_dense if encoder.has_pooler else None
        shape = EncoderShape.of(encoder)
        for block_slots in [*slots, embedding_slots]:
            shape.build_slots(block_slots)
        positions = architecture.positions(encoder)
        self.blocks = [
            AdaptedBlock(
                block,
                slot,
                encoder,
                use_dropout,
                norms,
                positions[i],
                name=f"block_{i}",
            )
            for i, (block, slot) in enumerate(zip(blocks, slots, strict=True))
        ]
        self.final_norm = None
        if architecture.final_norm is not None:
            own_norm = backbone.get_layer(architecture.final_norm)
            self.final_norm = next(norms, own_norm)
        self._rematerialized = {}
        self.build((None, None))

    def build(self, input_shape: Any) -> None:
        """Does nothing; Keras's `summary` requires the method."""

    @property
    def output_shape(self) -> tuple[None, None, int]:
        """Shape of `sequence_output`, for Keras's `summary`."""
        return (None, None, self.width)

    def rematerialize(self, variables: Iterable[keras.Variable]) -> None:
        """Makes the backward pass recompute activations, which saves memory.

        Args:
            variables: All variables that need a gradient: trained variables,
                and encoder variables whose values are reparameterized.
        """
        ids = frozenset(id(variable) for variable in variables)
        self._rematerialized = {
            block.name: rematerialized(block, ids) for block in self.blocks
        }

    @property
    def max_tokens(self) -> int | None:
        """Maximum number of tokens in a text, or `None` if unlimited."""
        positions = getattr(self.backbone, "max_sequence_length", None)
        if positions is None:
            return None
        slot = self.embedding_slots.get("word_embeddings")
        added = 0 if slot is None else slot.num_added_tokens
        return positions - self.position_offset - added

    @property
    def undo_embeddings(self) -> Callable[[Tensor], Tensor] | None:
        """Inverse function of the slot at `"embeddings"`, or `None`."""
        slot = self.embedding_slots.get("embeddings")
        return None if slot is None else slot.inverse

    @property
    def width(self) -> int:
        """Width `d` of the token vectors."""
        return self.backbone.hidden_dim

    @property
    def token_embeddings(self) -> Tensor:
        """The matrix of token embeddings, `(vocabulary, embedding width)`.

        It is a variable, or a tensor if the encoder is quantized.
        """
        return embeddings_of(self.backbone.token_embedding)

    def norms(self) -> list[keras.layers.Layer]:
        """Returns the norms of embeddings and blocks, and a final norm, if any.

        If blocks share weights, as in ALBERT, they have the same norms.
        """
        norms: list[keras.layers.Layer] = [self.embedding_norm]
        for block in self.blocks:
            norms += block.norms()
        return norms if self.final_norm is None else [*norms, self.final_norm]

    def norm_variables(self) -> list[keras.Variable]:
        """Returns gamma and beta of all layer norms, each only once."""
        norms = {id(norm): norm for norm in self.norms()}.values()
        return [variable for norm in norms for variable in norm.variables]

    def pooler_variables(self) -> list[keras.Variable]:
        """Returns the pooler's variables, or `[]` if there is no pooler."""
        return [] if self.pooler is None else list(self.pooler.variables)

    def used_variables(self) -> list[keras.Variable]:
        """Returns the backbone's weights, except those of an unused pooler."""
        pooler = getattr(self.backbone, "pooled_dense", None)
        if pooler is None or self.pooler is not None:
            return self.backbone.weights
        unused = {id(variable) for variable in pooler.weights}
        return [v for v in self.backbone.weights if id(v) not in unused]

    def call(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        seed: Tensor | None = None,
        first_token_only: bool = False,
        return_hidden_states: bool = False,
        return_probes: bool = False,
    ) -> dict[str, Any]:
        encoder_checks.check_inputs(self, inputs)
        quantization.check_float(self.backbone)
        inputs = encoder_checks.of_one_shape(inputs)
        drops = training and seed is not None
        seeds = StatelessSeeds(seed) if drops else None
        # The mask may be boolean; counting added tokens needs integers.
        mask = ops.cast(inputs["padding_mask"], "int32")
        context = Context(mask, inputs.get("adapter_rows"), seeds)
        x, context = adapted_embeddings.embed(self, inputs, context, training)
        first, given = frozen_blocks.given_state(inputs)
        if given is not None:
            x = ops.cast(given, x.dtype)
        hidden_states, probes = [x], []
        last_slots = self.blocks[-1].slots.values()
        shortcut = first_token_only and not (
            return_hidden_states
            or return_probes
            or any(slot.needs_all_tokens for slot in last_slots)
        )
        again = training and not return_probes and self._rematerialized
        shared = None if return_probes else shared_graphs.in_use()
        for block in self.blocks[first:]:
            last = shortcut and block is self.blocks[-1]
            if again:
                x, block_probes = again[block.name](x, context, last), {}
            elif shared is not None:
                x, block_probes = (
                    shared.run(
                        *(block, x, context),
                        first_token_only=last,
                        training=training,
                    ),
                    {},
                )
            else:
                x, block_probes = block(
                    x, context=context, first_token_only=last, training=training
                )
            hidden_states.append(x)
            probes.append(block_probes)
        if self.final_norm is not None:
            gamma, beta = norm_weights(self.final_norm, context.adapter_rows)
            x = layer_norm(x, gamma, beta, self.epsilon)
            hidden_states[-1] = x
        outputs = {
            "sequence_output": x if shortcut else of_text(self, x),
            "first_token_output": x[:, 0],
        }
        if self.pooler is not None:
            outputs["pooled_output"] = ops.tanh(
                dense(
                    x[:, 0],
                    kernel_of(self.pooler, self.width),
                    self.pooler.bias,
                )
            )
        if return_hidden_states:
            outputs["hidden_states"] = [of_text(self, x) for x in hidden_states]
        if return_probes:
            outputs["probes"] = probes
        return outputs
