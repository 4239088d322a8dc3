"""Computes the input of the first block: embeddings, changed by slots.

These functions take an `AdaptedEncoder`, whose attributes hold the layers.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from keras import ops

from tf_adapters.common.types import Tensor
from tf_adapters.layers.banks.norms import norm_weights
from tf_adapters.layers.context import Context
from tf_adapters.layers.dense import dense
from tf_adapters.layers.normalization import layer_norm
from tf_adapters.layers.quantized import kernel_of
from tf_adapters.layers.quantized import look_up
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.stateless_seeds import dropout

if TYPE_CHECKING:
    import keras

    from tf_adapters.models.adapted_encoder import AdaptedEncoder

# DistilBERT's layer of token and position embeddings in KerasHub.
_TOKENS = "token_and_position_embedding"


def embed(
    encoder: AdaptedEncoder,
    inputs: dict[str, Tensor],
    context: Context,
    training: bool | None,
) -> tuple[Tensor, Context]:
    """Computes the input of the first block, and updates the `Context`.

    If slots insert vectors, the padding mask in the new context includes them.
    """
    if (
        "word_embeddings" in encoder.embedding_slots
        or encoder.position_offset
        or encoder.backbone.token_embedding.quantization_mode == "int4"
    ):
        x, context = _embed_with_slot(encoder, inputs, context, training)
    else:
        names = [tensor.name for tensor in encoder.embeddings.inputs]
        x = encoder.embeddings({name: inputs[name] for name in names})
    if encoder.counts_positions:
        x = _from_first_token(encoder, x, context.padding_mask)
    # Tables are read in float32, see `embedding_precision`.
    x = ops.cast(x, encoder.backbone.dtype_policy.compute_dtype)
    gamma, beta = norm_weights(encoder.embedding_norm, context.adapter_rows)
    x = layer_norm(x, gamma, beta, encoder.epsilon)
    x = dropout(x, encoder.hidden_dropout, context.seeds)
    if encoder.projection is not None:
        kernel = kernel_of(encoder.projection, x.shape[-1])
        x = dense(x, kernel, encoder.projection.bias)
    return _in_slot(encoder, "embeddings", x, context, training)


def _embed_with_slot(
    encoder: AdaptedEncoder,
    inputs: dict[str, Tensor],
    context: Context,
    training: bool | None,
) -> tuple[Tensor, Context]:
    """Applies a slot to the word embeddings, then adds all other embeddings.

    Returns the sum and the updated context. If there is neither a slot nor a
    position offset, the sum is the output of `encoder.embeddings`.
    """
    tokens = look_up(encoder.backbone.token_embedding, inputs["token_ids"])
    x, context = _in_slot(encoder, "word_embeddings", tokens, context, training)
    names = [layer.name for layer in encoder.backbone.layers]
    positions = _position_embedding(encoder, names)
    y = x
    if positions is not None:
        y = x + positions(x, start_index=encoder.position_offset)
    if "segment_embedding" in names:
        slot = encoder.embedding_slots.get("word_embeddings")
        # The vectors that a slot adds belong to segment 0.
        segments = _lengthened(inputs["segment_ids"], slot, 0)
        y = y + encoder.backbone.get_layer("segment_embedding")(segments)
    return y, context


def _position_embedding(
    encoder: AdaptedEncoder, names: list[str]
) -> keras.layers.Layer | None:
    """Returns the position embedding layer, or `None` if there is none.

    `names` are the names of the backbone's layers.
    """
    if "position_embedding" in names:
        return encoder.backbone.get_layer("position_embedding")
    joint = "embeddings" if encoder.counts_positions else _TOKENS
    if joint not in names:
        return None
    return encoder.backbone.get_layer(joint).position_embedding


def _in_slot(
    encoder: AdaptedEncoder,
    place: str,
    x: Tensor,
    context: Context,
    training: bool | None,
) -> tuple[Tensor, Context]:
    """Applies the slot at `place`, if any, to `x`.

    Returns the result, and a context whose mask includes inserted vectors.
    """
    slot = encoder.embedding_slots.get(place)
    if slot is None:
        return x, context
    x, _ = slot(x, context=context, training=training)
    mask = _lengthened(context.padding_mask, slot, 1)
    return x, dataclasses.replace(context, padding_mask=mask)


def of_text(encoder: AdaptedEncoder, x: Tensor) -> Tensor:
    """Returns token vectors `x` without the vectors that slots inserted."""
    for slot in encoder.embedding_slots.values():
        first, number = slot.first_added_token, slot.num_added_tokens
        if number:
            x = ops.concatenate([x[:, :first], x[:, first + number :]], axis=1)
    return x


def _from_first_token(
    encoder: AdaptedEncoder, x: Tensor, padding_mask: Tensor
) -> Tensor:
    """Corrects the position embeddings in `x` for texts padded on the left.

    Positions then count from the first token, as for RoBERTa and XLM-R in
    Hugging Face's library. KerasHub's embeddings count from the first column.
    Without padding on the left, `x` does not change.
    """
    layer = encoder.backbone.get_layer("embeddings").position_embedding
    table = ops.cast(layer.position_embeddings, x.dtype)
    tokens = ops.cumsum(ops.cast(padding_mask, "int32"), axis=1)
    before = ops.sum(ops.cast(tokens == 0, "int32"), axis=1)
    columns = ops.arange(ops.shape(x)[1])
    positions = ops.maximum(columns - before[:, None], 0)
    offset = encoder.position_offset

    # There is no condition here, because OpenVINO computes it wrongly. If a
    # token's position does not change, the difference is exactly 0.
    counted = ops.take(table, columns + offset, axis=0)
    return x + (ops.take(table, positions + offset, axis=0) - counted)


def _lengthened(values: Tensor, slot: Slot | None, value: int) -> Tensor:
    """Inserts `value` into each row, once for each vector that a slot inserts.

    The integers `values` have shape `(batch, tokens)`.
    """
    if slot is None or not slot.num_added_tokens:
        return values
    first = slot.first_added_token
    rest = ops.pad(
        values[:, first:],
        ((0, 0), (slot.num_added_tokens, 0)),
        constant_values=value,
    )
    # Texts padded on the left begin with padding, which stays first.
    return ops.concatenate([values[:, :first], rest], axis=1) if first else rest
