"""Checks the slots, inputs and weights of an `AdaptedEncoder`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import EMBEDDING_PLACES
from tf_adapters.layers.slot import Slot

if TYPE_CHECKING:
    import keras_hub

    from tf_adapters.models.adapted_encoder import AdaptedEncoder


def check_slots(
    slots: Sequence[dict[str, Slot]],
    embedding_slots: dict[str, Slot],
    num_blocks: int,
) -> None:
    """Raises a `UserError` if slots cannot be attached to an encoder.

    Args:
        slots: List with one dict per block, from place to slot.
        embedding_slots: Dict from a place at the embeddings to a slot.
        num_blocks: Number of blocks of the encoder.
    """
    if len(slots) != num_blocks:
        raise UserError(
            f"Expected one dict of slots for each of the {num_blocks} "
            f"blocks. Received: {len(slots)}"
        )
    for place in embedding_slots:
        check_known("position at the embeddings", place, EMBEDDING_PLACES)


def check_positions(encoder: AdaptedEncoder) -> None:
    """Raises a `UserError` if vectors before a text leave it no positions."""
    longest = encoder.max_tokens
    if longest is not None and longest < 1:
        positions = encoder.backbone.max_sequence_length
        raise UserError(
            f"The encoder has {positions} positions, and the prefix or prompt "
            f"before the text takes {positions - longest} of them, so that "
            "none is left for the text. Use a shorter prefix or prompt, or the "
            "form 'adapterhub', which takes no positions."
        )


def check_inputs(encoder: AdaptedEncoder, inputs: Any) -> None:
    """Raises a `UserError` unless `inputs` are valid inputs of an encoder.

    Sizes that are unknown before a graph runs are not compared here:
    `of_one_shape` checks them.
    """
    if not isinstance(inputs, dict):
        raise _no_features(f"{type(inputs).__name__}, {shown(inputs)}")
    for name, value in inputs.items():
        if isinstance(value, list | tuple):
            raise UserError(
                f"Expected arrays or tensors. Received: `{name}`, a "
                f"{type(value).__name__}. Make it `np.array({name})`."
            )
        if is_text(value.dtype):
            raise _no_features(f"texts as `{name}`")
    names = [tensor.name for tensor in encoder.embeddings.inputs]
    missing = [name for name in names if name not in inputs]
    if missing:
        raise UserError(
            f"The inputs lack {', '.join(f'`{n}`' for n in missing)}. "
            f"Expected: {', '.join(names)}, each of shape (batch, tokens). "
            f"Received: {cut(', '.join(inputs))}. `tf_adapters.TextPacker("
            "tokenizer, max_length, encoder.takes_segments)` makes them all."
        )
    _check_same_shapes({name: inputs[name].shape for name in names})
    _check_values(encoder, {name: inputs[name] for name in names})
    tokens = inputs["token_ids"].shape[-1]
    longest = encoder.max_tokens
    if None not in (tokens, longest) and tokens > longest:
        raise UserError(
            f"The texts have {tokens} tokens, padding included, but the "
            f"encoder has positions for {longest}. Cut them: "
            f"`tf_adapters.TextPacker(tokenizer, max_length={longest})`."
        )


def _no_features(received: str) -> UserError:
    return UserError(
        "Expected a dict of token features, as `tf_adapters.TextPacker("
        f"tokenizer, max_length=...)(texts)` makes it. Received: {received}"
    )


def is_text(dtype: Any) -> bool:
    """Returns whether a dtype, of NumPy or of a backend, is a string type."""
    try:
        return keras.backend.standardize_dtype(dtype) == "string"
    except ValueError:
        # A NumPy string dtype, which Keras cannot name.
        return True


def _check_same_shapes(shapes: dict[str, Any]) -> None:
    """Raises a `UserError` if inputs have different shapes or no tokens.

    Without this check, the backend would broadcast them. Sizes that are `None`
    are not compared. `shapes` is a dict from the name of an input to its shape.
    """
    is_right = len({len(shape) for shape in shapes.values()}) == 1 and all(
        len({size for size in sizes if size is not None}) < 2
        for sizes in zip(*shapes.values(), strict=True)
    )
    shape = shapes["token_ids"]
    if not is_right or len(shape) < 2 or shape[-1] == 0:
        received = ", ".join(f"`{n}` {tuple(s)}" for n, s in shapes.items())
        raise UserError(
            "Expected inputs of one shape, (batch, tokens), with one token or "
            f"more. Received: {received}. `tf_adapters.TextPacker` makes them "
            "all of a batch of texts."
        )


def of_one_shape(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Reshapes the padding mask and segment ids to the shape of `token_ids`.

    A graph then fails if their sizes do not match. Otherwise a mask of one row
    or column would be broadcast, and oneDNN's kernels would read past the end
    of a mask that is too short. If all sizes are known, nothing is reshaped.
    """
    ids = inputs["token_ids"]
    if None not in ids.shape:
        return inputs
    names = [n for n in ("padding_mask", "segment_ids") if n in inputs]
    shaped = {n: ops.reshape(inputs[n], ops.shape(ids)) for n in names}
    return {**inputs, **shaped}


def _check_values(encoder: AdaptedEncoder, inputs: dict[str, Tensor]) -> None:
    """Raises a `UserError` if NumPy arrays hold ids that are out of range.

    Tensors are not checked.
    """
    ends = {
        "token_ids": encoder.backbone.token_embedding.input_dim,
        "padding_mask": 2,
        "segment_ids": _num_segments(encoder.backbone),
    }
    for name, value in inputs.items():
        if not isinstance(value, np.ndarray) or not value.size:
            continue
        least, most = value.min(), value.max()
        # A negative id would be counted from the end of the embedding table.
        if least < 0 or most >= ends[name]:
            raise UserError(
                f"`{name}` must hold integers from 0 to {ends[name] - 1}. "
                f"Received: from {least} to {most}. Was another tokenizer than "
                "the encoder's used?"
            )


def _num_segments(backbone: keras_hub.models.Backbone) -> int:
    """Returns the number of segment embeddings, or 1 if there are none."""
    if "segment_embedding" not in [layer.name for layer in backbone.layers]:
        return 1
    return backbone.get_layer("segment_embedding").input_dim
