"""A KerasHub encoder whose blocks have two slots for what a method adds.

The embedding part of the backbone becomes a sub-model; each of its blocks is
run by an `AdaptedBlock`. With empty slots the outputs are the checkpoint's own.
"""

import keras
from keras import ops
import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import dropout
from tf_adapters.models.adapted_block import AdaptedBlock
from tf_adapters.models.adapted_block import norm_weights


class AdaptedEncoder(keras.layers.Layer):
    """A frozen encoder with slots.

    Args:
        encoder: `tf_adapters.encoders.encoder.Encoder`.
        slots: List of one dict for each block, from slot name to slot layer.
            A layer may recur. `None` (default) leaves all slots empty.
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
            `sequence_output` then has one token. Exact.
        return_hidden_states: Whether to return the embedding output and each
            block's output.
        return_probes: Whether to return what the slots report.

    Returns:
        Dict with `sequence_output` `(batch, tokens, width)`; `pooled_output`
        `(batch, width)` where the backbone has a pooler; on request
        `hidden_states`, a list of `num_blocks + 1` tensors, and `probes`, a
        list of one dict for each block.
    """

    def __init__(
        self, encoder, slots=None, use_dropout=True, norms=None, **kwargs
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
        for block_slots in slots:
            for slot in block_slots.values():
                if not slot.built:
                    slot.build((None, None, self.width))
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
        self.blocks[block].after_attention = None
        self.blocks[block].after_ffn = None

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
        longest = getattr(self.backbone, "max_sequence_length", None)
        if None not in (tokens, longest) and tokens > longest:
            raise UserError(
                f"The texts have {tokens} tokens, padding included, but the "
                f"encoder has {longest} positions. Cut them: "
                f"`tf_adapters.TextPacker(tokenizer, max_length={longest})`."
            )

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

    def attention_kernels(self):
        """Returns for each block what its `attention_kernels` returns."""
        return [block.attention_kernels() for block in self.blocks]

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
        x = self._embed(inputs, context)
        hidden_states, probes = [x], []
        shortcut = first_token_only and not (
            return_hidden_states or return_probes
        )
        for block in self.blocks:
            last = shortcut and block is self.blocks[-1]
            x, block_probes = block(
                x, context=context, first_token_only=last, training=training
            )
            hidden_states.append(x)
            probes.append(block_probes)
        outputs = {"sequence_output": x}
        if self.pooler is not None:
            outputs["pooled_output"] = ops.tanh(
                dense(x[:, 0], self.pooler.kernel, self.pooler.bias)
            )
        if return_hidden_states:
            outputs["hidden_states"] = hidden_states
        if return_probes:
            outputs["probes"] = probes
        return outputs

    def _embed(self, inputs, context):
        names = [tensor.name for tensor in self.embeddings.inputs]
        x = self.embeddings({name: inputs[name] for name in names})
        if self._counts_positions:
            x = self._from_first_token(x, inputs["padding_mask"])
        gamma, beta = norm_weights(self.embedding_norm, context.adapter_ids)
        x = layer_norm(x, gamma, beta, self.epsilon)
        x = dropout(x, self.hidden_dropout, context.seeds)
        if self.projection is not None:
            x = dense(x, self.projection.kernel, self.projection.bias)
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


def _check_not_quantized(backbone):
    """Raises a `UserError` if kernels are integers, which would be misread."""
    for variable in backbone.weights:
        if "int" in keras.backend.standardize_dtype(variable.dtype):
            raise UserError(
                f"The encoder is quantised: `{variable.path}` has type "
                f"{variable.dtype}. Adapters read its weights as floats: "
                "load the encoder anew, without `quantize`."
            )
