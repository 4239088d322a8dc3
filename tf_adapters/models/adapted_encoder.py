"""A KerasHub encoder with places for what a method adds.

The embedding part of the backbone becomes a sub-model; each of its blocks is
run by an `AdaptedBlock`. With empty slots the outputs are the checkpoint's own.
"""

import dataclasses

import keras
from keras import ops
import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_known
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.slot import EMBEDDING_PLACES
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.methods.method import EncoderShape
from tf_adapters.models.adapted_block import AdaptedBlock
from tf_adapters.models.adapted_block import norm_weights

# KerasHub's layer of words and positions in DistilBERT.
_TOKENS = "token_and_position_embedding"


class AdaptedEncoder(keras.layers.Layer):
    """A frozen encoder with slots.

    Args:
        encoder: `tf_adapters.encoders.encoder.Encoder`.
        slots: List of one dict for each block, from place to `Slot`. A slot
            may recur. `None` (default) leaves all places empty.
        embedding_slots: Dict from `word_embeddings` and `embeddings` to `Slot`,
            or `None` (default).
        position_offset: Integer. By how many positions the texts move on, for
            what a method says stands before them. Defaults to 0.
        use_dropout: Whether the encoder's own dropout acts in training, as in
            all five papers. Defaults to `True`.
        norms: List of built `BankNorm`s in place of the embedding's norm and
            of both norms of each block, or `None` (default).

    Call arguments:
        inputs: Dict of integer tensors `(batch, tokens)`: `token_ids`,
            `padding_mask`, and `segment_ids` where the backbone takes them;
            optionally `adapter_ids` of shape `(batch,)`.
        training: Whether dropout and slots act as in training.
        seed: Integer tensor of shape `(2,)`, needed in training: see
            `StatelessSeeds`.
        first_token_only: Whether the last block computes position 0 only.
            `sequence_output` then has one token. Exact. Not used where hidden
            states or probes are asked for.
        return_hidden_states: Whether to return the embedding output and each
            block's output.
        return_probes: Whether to return what the slots report.

    Returns:
        Dict with `sequence_output` `(batch, tokens, width)`;
        `first_token_output` `(batch, width)`, which is not the text's own where
        a method puts something before it; `pooled_output` `(batch, width)`,
        made of that, where the backbone has a pooler; on request
        `hidden_states`, a list of `num_blocks + 1` tensors, and `probes`, a
        list of one dict for each block, from a place to what its slot reports.
    """

    def __init__(
        self,
        encoder,
        slots=None,
        use_dropout=True,
        norms=None,
        embedding_slots=None,
        position_offset=0,
        **kwargs,
    ):
        backbone = encoder.backbone
        super().__init__(autocast=False, **kwargs)
        blocks = backbone.transformer_layers
        slots = [{} for _ in blocks] if slots is None else slots
        if len(slots) != len(blocks):
            raise UserError(
                f"Expected one dict of slots for each of the {len(blocks)} "
                f"blocks. Received: {len(slots)}"
            )
        _check_not_quantized(backbone)
        self.backbone = backbone
        self.slots = slots
        self.embedding_slots = dict(embedding_slots or {})
        for place in self.embedding_slots:
            check_known("place of the embeddings", place, EMBEDDING_PLACES)
        self.position_offset = position_offset
        self.epsilon = encoder.layer_norm_epsilon
        self.hidden_dropout = encoder.hidden_dropout if use_dropout else 0
        own_norm = backbone.get_layer("embeddings_layer_norm")
        self.embedding_norm = norms[0] if norms else own_norm
        self.embeddings = keras.Model(
            backbone.input, own_norm.input, name="embeddings"
        )
        # XLM-R's is one of RoBERTa's.
        self._counts_positions = isinstance(
            backbone, keras_hub.models.RobertaBackbone
        )
        self.projection = getattr(backbone, "embeddings_projection", None)
        self.pooler = backbone.pooled_dense if encoder.has_pooler else None
        shape = encoder_shape(encoder)
        for block_slots in [*slots, self.embedding_slots]:
            for place, slot in block_slots.items():
                if not slot.built:
                    slot.build((None, None, shape.read_in(place)))
        self.blocks = [
            AdaptedBlock(
                block,
                slot,
                encoder,
                use_dropout,
                norms and norms[1 + 2 * i : 3 + 2 * i],
                name=f"block_{i}",
            )
            for i, (block, slot) in enumerate(zip(blocks, slots, strict=True))
        ]
        self.built = True

    def empty_slots(self, block):
        """Makes a block the encoder's own again, but for norms that trained.

        The slots' variables stay the model's; nothing reads them any more.
        """
        self.blocks[block].places_in_use = ()

    def check_inputs(self, inputs):
        """Raises a `UserError` unless `inputs` are what a call takes.

        Lengths are compared where they are known: not in a graph of any length.
        """
        if not isinstance(inputs, dict):
            raise UserError(
                "Expected a dict of tensors, as `tf_adapters.TextPacker` makes "
                f"it. Received: {type(inputs).__name__}"
            )
        names = [tensor.name for tensor in self.embeddings.inputs]
        missing = [name for name in names if name not in inputs]
        if missing:
            raise UserError(
                f"The inputs lack {', '.join(f'`{n}`' for n in missing)}. "
                f"Expected: {', '.join(names)}, each of shape (batch, tokens). "
                f"Received: {', '.join(inputs)}"
            )
        tokens = inputs["token_ids"].shape[-1]
        longest = self.max_tokens
        if None not in (tokens, longest) and tokens > longest:
            raise UserError(
                f"The texts have {tokens} tokens, padding included, but the "
                f"encoder has positions for {longest}. Cut them: "
                f"`tf_adapters.TextPacker(tokenizer, max_length={longest})`."
            )

    @property
    def max_tokens(self):
        """How many tokens a text may have, or `None` for any number."""
        positions = getattr(self.backbone, "max_sequence_length", None)
        if positions is None:
            return None
        slot = self.embedding_slots.get("word_embeddings")
        added = 0 if slot is None else slot.num_added_tokens
        return positions - self.position_offset - added

    @property
    def undo_embeddings(self):
        """Function that undoes the slot of the embeddings, or `None`."""
        slot = self.embedding_slots.get("embeddings")
        return None if slot is None else slot.inverse

    @property
    def width(self):
        """Width `d` of the token vectors."""
        return self.backbone.hidden_dim

    @property
    def token_embeddings(self):
        """The token embedding, a variable `(vocabulary, embedding width)`."""
        return self.backbone.token_embedding.embeddings

    def norm_variables(self):
        """Returns gamma and beta of every layer norm, the embedding's first."""
        norms = [self.embedding_norm]
        for block in self.blocks:
            norms += [block.attention_norm, block.ffn_norm]
        return [variable for norm in norms for variable in norm.variables]

    def pooler_variables(self):
        """Returns the pooler's variables; none where there is no pooler."""
        return [] if self.pooler is None else list(self.pooler.variables)

    def kernels_after_dropout(self):
        """Returns kernels that read a dropout, as `AdaptedBlock`'s.

        The embeddings' dropout is read by the first block, or by a projection.
        """
        found = []
        if self.projection is not None:
            found.append((self.projection.kernel, 1))
        for block in self.blocks:
            found += block.kernels_after_dropout()
        if self.pooler is not None:
            found.append((self.pooler.kernel, 1))
        return found

    def used_variables(self):
        """Returns the backbone's weights that the outputs depend on."""
        pooler = getattr(self.backbone, "pooled_dense", None)
        if pooler is None or self.pooler is not None:
            return self.backbone.weights
        unused = {id(variable) for variable in pooler.weights}
        return [v for v in self.backbone.weights if id(v) not in unused]

    def call(
        self,
        inputs,
        training=None,
        seed=None,
        first_token_only=False,
        return_hidden_states=False,
        return_probes=False,
    ):
        self.check_inputs(inputs)
        _check_not_quantized(self.backbone)
        seeds = StatelessSeeds(seed) if training else None
        context = Context(
            inputs["padding_mask"], inputs.get("adapter_ids"), seeds
        )
        x, context = self._embed(inputs, context, training)
        hidden_states, probes = [x], []
        last_slots = self.blocks[-1].slots.values()
        shortcut = first_token_only and not (
            return_hidden_states
            or return_probes
            or any(slot.needs_all_tokens for slot in last_slots)
        )
        for block in self.blocks:
            last = shortcut and block is self.blocks[-1]
            x, block_probes = block(
                x, context=context, first_token_only=last, training=training
            )
            hidden_states.append(x)
            probes.append(block_probes)
        outputs = {
            "sequence_output": x if shortcut else self._of_text(x),
            "first_token_output": x[:, 0],
        }
        if self.pooler is not None:
            outputs["pooled_output"] = ops.tanh(
                dense(x[:, 0], self.pooler.kernel, self.pooler.bias)
            )
        if return_hidden_states:
            outputs["hidden_states"] = [self._of_text(x) for x in hidden_states]
        if return_probes:
            outputs["probes"] = probes
        return outputs

    def _embed(self, inputs, context, training):
        """Returns what the first block reads, and the context of that."""
        if "word_embeddings" in self.embedding_slots or self.position_offset:
            x, context = self._embed_with_slot(inputs, context, training)
        else:
            names = [tensor.name for tensor in self.embeddings.inputs]
            x = self.embeddings({name: inputs[name] for name in names})
        if self._counts_positions:
            x = self._from_first_token(x, context.padding_mask)
        gamma, beta = norm_weights(self.embedding_norm, context.adapter_ids)
        x = layer_norm(x, gamma, beta, self.epsilon)
        x = dropout(x, self.hidden_dropout, context.seeds)
        if self.projection is not None:
            x = dense(x, self.projection.kernel, self.projection.bias)
        return self._in_slot("embeddings", x, context, training)

    def _embed_with_slot(self, inputs, context, training):
        """Adds up the embeddings one by one, with a slot behind the words'."""
        tokens = self.backbone.token_embedding(inputs["token_ids"])
        x, context = self._in_slot("word_embeddings", tokens, context, training)
        names = [layer.name for layer in self.backbone.layers]
        if "position_embedding" in names:
            positions = self.backbone.get_layer("position_embedding")
        else:
            joint = "embeddings" if self._counts_positions else _TOKENS
            positions = self.backbone.get_layer(joint).position_embedding
        y = x + positions(x, start_index=self.position_offset)
        if "segment_embedding" in names:
            slot = self.embedding_slots.get("word_embeddings")
            # What a slot adds is of segment 0.
            segments = _lengthened(inputs["segment_ids"], slot, 0)
            y = y + self.backbone.get_layer("segment_embedding")(segments)
        return y, context

    def _in_slot(self, place, x, context, training):
        """Returns what a slot makes of embeddings, and the context of that."""
        slot = self.embedding_slots.get(place)
        if slot is None:
            return x, context
        x, _ = slot(x, context=context, training=training)
        mask = _lengthened(context.padding_mask, slot, 1)
        return x, dataclasses.replace(context, padding_mask=mask)

    def _of_text(self, x):
        """Returns the vectors of the text's own tokens."""
        for slot in self.embedding_slots.values():
            first, number = slot.first_added_token, slot.num_added_tokens
            if number:
                x = ops.concatenate(
                    [x[:, :first], x[:, first + number :]], axis=1
                )
        return x

    def _from_first_token(self, x, padding_mask):
        """Counts positions from the first token, where padding is before it.

        So do RoBERTa and XLM-R in Hugging Face's library; KerasHub's embeddings
        count from the first column. Without such padding nothing changes.
        """
        layer = self.backbone.get_layer("embeddings").position_embedding
        table = ops.cast(layer.position_embeddings, x.dtype)
        is_padding = 1 - ops.cast(padding_mask, "int32")
        before = ops.sum(ops.cumprod(is_padding, axis=1), axis=1)
        columns = ops.arange(ops.shape(x)[1])
        positions = ops.maximum(columns - before[:, None], 0)

        def moved():
            difference = ops.take(table, positions, axis=0)
            return x + difference - ops.take(table, columns, axis=0)

        return ops.cond(ops.any(before > 0), moved, lambda: x)


def _lengthened(values, slot, value):
    """Returns `(batch, tokens)` integers with those of a slot's added tokens.

    They are equal, so that it does not matter where they stand.
    """
    added = 0 if slot is None else slot.num_added_tokens
    return ops.pad(values, ((0, 0), (added, 0)), constant_values=value)


def encoder_shape(encoder):
    """Returns the `EncoderShape` of an `Encoder`."""
    backbone = encoder.backbone
    return EncoderShape(
        num_blocks=backbone.num_layers,
        width=backbone.hidden_dim,
        ffn_width=backbone.intermediate_dim,
        num_heads=backbone.num_heads,
        embedding_width=backbone.token_embedding.embeddings.shape[-1],
    )


def _check_not_quantized(backbone):
    """Raises a `UserError` if kernels are integers, which would be misread."""
    for variable in backbone.weights:
        if "int" in keras.backend.standardize_dtype(variable.dtype):
            raise UserError(
                f"The encoder is quantised: `{variable.path}` has type "
                f"{variable.dtype}. Adapters read its weights as floats: "
                "load the encoder anew, without `quantize`."
            )
