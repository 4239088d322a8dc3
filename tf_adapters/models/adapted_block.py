"""One block of a KerasHub encoder, with two slots for what a method adds.

`AdaptedBlock` reads the kernels and biases of a block's sublayers and calls a
slot after attention and after the feed-forward network. This is the only file
that reads KerasHub's private attributes; `tests/models/adapted_encoder_test.py`
has a canary for each architecture.

Weights stay in float32 and are cast where they are used, to the type of the
token vectors, which the backbone's policy decides. So Keras's own casting is
off in every layer of ours (`autocast=False`).
"""

import dataclasses

import keras
from keras import ops

from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_known
from tf_adapters.layers import activations
from tf_adapters.layers.attention import attention
from tf_adapters.layers.bank import BankNorm
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.stateless_seeds import dropout

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
        for name in slots:
            check_known("slot", name, SLOT_NAMES)
        if block.normalize_first:
            raise UserError(
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
        self._activation = activations.get_activation(encoder.activation)
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

    def attention_kernels(self):
        """Returns the kernels of attention, with how many axes are inputs.

        A dict from `"query"`, `"key"`, `"value"` and `"output"` to a kernel and
        the number of its first axes that are inputs.
        """
        layer = self.block._self_attention_layer
        return {
            "query": (layer._query_dense.kernel, 1),
            "key": (layer._key_dense.kernel, 1),
            "value": (layer._value_dense.kernel, 1),
            "output": (layer._output_dense.kernel, 2),
        }

    def kernels_after_dropout(self):
        """Returns pairs as in `attention_kernels`, of what reads a dropout.

        A dropout comes after each sublayer, to be read by the next one's
        kernels, and on the attention weights, which the output projection
        reads. None comes before the feed-forward network's second kernel.
        """
        inner = self.block._feedforward_intermediate_dense
        return [*self.attention_kernels().values(), (inner.kernel, 1)]

    def _slot_and_norm(self, slot, weights, x, context, training):
        gamma, beta = norm_weights(weights, context.adapter_ids)

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


def norm_weights(norm, adapter_ids):
    """Returns gamma and beta of a norm, or of each example's in a bank."""
    if isinstance(norm, BankNorm):
        return norm(adapter_ids)
    return norm.gamma, norm.beta
