"""A KerasHub encoder whose blocks have two slots for what a method adds.

The embedding part of the backbone becomes a sub-model; each of its blocks is
run by an `AdaptedBlock`, which reads the kernels and biases of the block's
sublayers and calls a slot after attention and after the feed-forward network.
With empty slots the outputs are the checkpoint's own. This is the only file
that reads KerasHub's private attributes; `tests/adapted_encoder_test.py` has a
canary for each architecture.

Weights stay in float32 and are cast where they are used, to the type of the
token vectors, which the backbone's policy decides. So Keras's own casting is
off in every layer of ours (`autocast=False`).
"""

import dataclasses

import keras
from keras import ops

from tf_adapters.layers import activations
from tf_adapters.layers.attention import attention
from tf_adapters.layers.bank import BankNorm
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.random import Seeds
from tf_adapters.layers.random import dropout

SLOT_NAMES = ("after_attention", "after_ffn")


class AdaptedBlock(keras.layers.Layer):
    """Runs one post-norm transformer block of a backbone, with two slots.

    A slot is a layer called as `slot(x, context, training)` that returns
    `(x', probes)`; the block then computes `norm(x' + residual)`. `x` is the
    sublayer's output after its dropout, of shape `(batch, tokens, width)`;
    `context` is a `tf_adapters.layers.context.Context`.

    Args:
        block: A built KerasHub `TransformerEncoder` with norms after the
            residual.
        slots: Dict from slot name to slot layer; a name may be missing.
        encoder: The `Encoder` that tells activation, epsilon and dropout.
        use_dropout: Whether the block's own dropout acts in training.
        norms: The `BankNorm`s after attention and after the feed-forward
            network, in place of the block's own norms, or `None`.
    """

    def __init__(
        self, block, slots, encoder, use_dropout=True, norms=None, **kwargs
    ):
        super().__init__(autocast=False, **kwargs)
        unknown = set(slots) - set(SLOT_NAMES)
        if unknown:
            raise ValueError(
                f"Unknown slots {sorted(unknown)}. Known slots: {SLOT_NAMES}"
            )
        if block.normalize_first:
            raise ValueError(
                f"Block `{block.name}` normalises before its sublayers; slots "
                "are defined for blocks that normalise after the residual "
                "(BERT, RoBERTa, XLM-R, DistilBERT, ELECTRA)."
            )
        self.block = block
        self.after_attention = slots.get("after_attention")
        self.after_ffn = slots.get("after_ffn")
        self.attention_norm, self.ffn_norm = norms or (
            block._self_attention_layer_norm,
            block._feedforward_layer_norm,
        )
        self.epsilon = encoder.layer_norm_epsilon
        self.hidden_dropout = encoder.hidden_dropout if use_dropout else 0
        self.attention_dropout = encoder.attention_dropout if use_dropout else 0
        self.attention_output_dropout = (
            encoder.attention_output_dropout if use_dropout else 0
        )
        self._activation = activations.get(encoder.activation)
        self.built = True

    def call(self, x, context, first_token_only=False, training=None):
        """Returns the block's output and the probes of its slots.

        Args:
            x: `(batch, tokens, width)`.
            context: `Context` with `padding_mask`, `adapter_ids` and `seeds`.
            first_token_only: Whether only position 0 is computed; keys and
                values still see every token, so the result is exact.
            training: Whether slots act as in training.
        """
        residual = x[:, :1] if first_token_only else x
        context = dataclasses.replace(context, block_input=x, residual=residual)
        attended = self._attend(residual, x, context)
        attended = dropout(
            attended, self.attention_output_dropout, context.seeds
        )
        x, attention_probes = self._slot_and_norm(
            self.after_attention,
            self.attention_norm,
            attended,
            context,
            training,
        )
        inner = self.block._feedforward_intermediate_dense
        intermediate = dense(x, inner.kernel, inner.bias, self._activation)
        context = dataclasses.replace(
            context, residual=x, intermediate=intermediate
        )
        outer = self.block._feedforward_output_dense
        output = dense(intermediate, outer.kernel, outer.bias)
        output = dropout(output, self.hidden_dropout, context.seeds)
        x, ffn_probes = self._slot_and_norm(
            self.after_ffn, self.ffn_norm, output, context, training
        )
        return x, {"after_attention": attention_probes, "after_ffn": ffn_probes}

    def _slot_and_norm(self, slot, weights, x, context, training):
        gamma, beta = _norm_weights(weights, context.adapter_ids)

        def norm(value):
            return layer_norm(value, gamma, beta, self.epsilon)

        probes = {}
        if slot is not None:
            context = dataclasses.replace(context, norm=norm)
            x, probes = slot(x, context=context, training=training)
        return norm(x + context.residual), probes

    def _attend(self, queries_from, keys_from, context):
        layer = self.block._self_attention_layer
        width, num_heads, _ = layer._query_dense.kernel.shape

        def project(x, projection):
            kernel = ops.reshape(projection.kernel, (width, width))
            return dense(x, kernel, ops.reshape(projection.bias, (width,)))

        mixed = attention(
            project(queries_from, layer._query_dense),
            project(keys_from, layer._key_dense),
            project(keys_from, layer._value_dense),
            num_heads,
            context.padding_mask,
            self.attention_dropout,
            context.seeds,
        )
        output = layer._output_dense
        kernel = ops.reshape(output.kernel, (width, width))
        return dense(mixed, kernel, output.bias)


def _norm_weights(norm, adapter_ids):
    """Returns gamma and beta of a norm, or of each example's in a bank."""
    if isinstance(norm, BankNorm):
        return norm(adapter_ids)
    return norm.gamma, norm.beta


class AdaptedEncoder(keras.layers.Layer):
    """A frozen encoder with slots.

    Args:
        encoder: `tf_adapters.encoders.Encoder`.
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
        seed: Integer tensor of shape `(2,)`, needed in training; see `Seeds`.
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
            raise ValueError(
                f"Expected one dict of slots for each of the {len(blocks)} "
                f"blocks. Received: {len(slots)}"
            )
        self.backbone = backbone
        self.slots = slots
        self.epsilon = encoder.layer_norm_epsilon
        self.hidden_dropout = encoder.hidden_dropout if use_dropout else 0
        own_norm = backbone.get_layer("embeddings_layer_norm")
        self.embedding_norm = norms[0] if norms else own_norm
        self.embeddings = keras.Model(
            backbone.input, own_norm.input, name="embeddings"
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

    @property
    def width(self):
        """Width `d` of the token vectors."""
        return self.backbone.hidden_dim

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
        """Returns the kernels of each block's attention, with input axes.

        A dict a block, from `"query"`, `"key"`, `"value"` and `"output"` to a
        kernel and how many of its axes, the first ones, are inputs.
        """
        attentions = [b.block._self_attention_layer for b in self.blocks]
        return [
            {
                "query": (attention._query_dense.kernel, 1),
                "key": (attention._key_dense.kernel, 1),
                "value": (attention._value_dense.kernel, 1),
                "output": (attention._output_dense.kernel, 2),
            }
            for attention in attentions
        ]

    def kernels_after_dropout(self):
        """Returns pairs as in `attention_kernels`, of what reads a dropout.

        A dropout comes after the embeddings and after each sublayer, to be read
        by the next one's kernels, and on the attention weights, which the
        output projection reads. None comes before the feed-forward network's
        second kernel.
        """
        found = []
        if self.projection is not None:
            found.append((self.projection.kernel, 1))
        for block, kernels in zip(
            self.blocks, self.attention_kernels(), strict=True
        ):
            found += kernels.values()
            inner = block.block._feedforward_intermediate_dense
            found.append((inner.kernel, 1))
        if self.pooler is not None:
            found.append((self.pooler.kernel, 1))
        return found

    def used_variables(self):
        """Returns the backbone's weights that the outputs depend on."""
        pooler = getattr(self.backbone, "pooled_dense", None)
        skipped = [] if pooler is None else pooler.weights
        skipped = {id(variable) for variable in skipped}
        if self.pooler is not None:
            skipped = set()
        return [v for v in self.backbone.weights if id(v) not in skipped]

    def call(
        self,
        inputs,
        training=None,
        seed=None,
        first_token_only=False,
        return_hidden_states=False,
        return_probes=False,
    ):
        seeds = Seeds(seed) if training else None
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
        gamma, beta = _norm_weights(self.embedding_norm, context.adapter_ids)
        x = layer_norm(x, gamma, beta, self.epsilon)
        x = dropout(x, self.hidden_dropout, context.seeds)
        if self.projection is not None:
            x = dense(x, self.projection.kernel, self.projection.bias)
        return x
