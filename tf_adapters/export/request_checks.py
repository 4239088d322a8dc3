"""Checks the inputs of a SavedModel before anything is computed.

Lookups and oneDNN's kernels do not check their inputs. Wrong shapes may be
broadcast, read beyond the end of a tensor, or crash the server. With these
checks, an invalid request fails with a one-sentence error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens import assertions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapted_encoder import AdaptedEncoder


def check_packer(packer: Packer, encoder: AdaptedEncoder) -> None:
    """Raises a `UserError` if a packer's inputs are too long for an encoder.

    Without this check, the server would fail on every long text.

    Args:
        packer: `TextPacker`.
        encoder: `AdaptedEncoder`, whose `max_tokens` is the limit.
    """
    longest = encoder.max_tokens
    if longest is not None and packer.max_length > longest:
        raise UserError(
            f"The packer cuts texts at max_length={packer.max_length} tokens, "
            f"but the encoder has positions for {longest}. Export with "
            f"`TextPacker(tokenizer, max_length={longest})`; of a run, with "
            f"--max_length={longest}."
        )


def checked_texts(
    names: Sequence[str], texts: Sequence[Tensor]
) -> list[Tensor]:
    """Returns the texts, and adds a graph check that batch sizes are equal.

    Args:
        names: Names of the inputs.
        texts: String tensors `(batch,)`. The last one may be
            `(batch, choices)`.
    """
    rows = dict(zip(names, _of_declared_ranks(texts), strict=True))
    return list(assertions.same_number_of_rows(rows).values())


def checked_tokens(
    names: Sequence[str], values: Sequence[Tensor], encoder: AdaptedEncoder
) -> dict[str, Tensor]:
    """Returns a dict of features, and adds checks of them to the graph.

    The checks assert equal shapes, valid lengths and values in range.

    Args:
        names: Names of the inputs.
        values: Int32 tensors `(batch, tokens)` or `(batch, choices, tokens)`.
        encoder: `AdaptedEncoder` that reads the features.
    """
    features = dict(zip(names, _of_declared_ranks(values), strict=True))
    limits = {
        "token_ids": encoder.backbone.token_embedding.input_dim,
        "padding_mask": 2,
    }
    if "segment_ids" in features:
        limits["segment_ids"] = encoder.backbone.num_segments
    return assertions.after(
        [
            _same_shapes(features),
            _length(features["token_ids"], encoder.max_tokens),
            *(_below(limits[name], name, x) for name, x in features.items()),
        ],
        features,
    )


def with_choices(choices: Tensor) -> Tensor:
    """Returns `choices`, and adds a graph check that there is at least one.

    Without choices, the most likely choice is undefined. `choices` is a string
    tensor `(batch, choices)`.
    """
    shape = tf.shape(choices)
    said = ["Expected at least one choice. Received choices of shape:", shape]
    return assertions.after([tf.debugging.Assert(shape[1] > 0, said)], choices)


def _of_declared_ranks(inputs: Sequence[Tensor]) -> list[Tensor]:
    # A signature does not check its inputs against the declared shapes.
    return [tf.ensure_shape(value, value.shape) for value in inputs]


def _same_shapes(features: dict[str, Tensor]) -> tf.Operation | None:
    shapes = tf.stack([tf.shape(value) for value in features.values()])
    names = ", ".join(f"`{name}`" for name in features)
    return tf.debugging.Assert(
        tf.reduce_all(shapes == shapes[0]),
        [f"Expected the same shape for {names}. Received:", shapes],
        summarize=shapes.shape.num_elements(),
    )


def _length(token_ids: Tensor, longest: int | None) -> tf.Operation | None:
    """Asserts that rows have from 1 to `longest` tokens.

    `longest` may be `None`. With choices, there must be at least one choice.
    """
    shape = tf.shape(token_ids)
    is_right = tf.reduce_all(shape[1:] > 0)
    expected = "Expected at least one token"
    if longest is not None:
        is_right &= shape[-1] <= longest
        expected = f"Expected from 1 to {longest} tokens, padding included"
    if token_ids.shape.rank == 3:
        expected += ", and at least one choice"
    said = [f"{expected}. Received `token_ids` of shape:", shape]
    return tf.debugging.Assert(is_right, said)


def _below(limit: int, name: str, values: Tensor) -> tf.Operation | None:
    is_right = tf.reduce_all((values >= 0) & (values < limit))
    ends = tf.stack([tf.reduce_min(values), tf.reduce_max(values)])
    expected = f"Expected `{name}` from 0 to {limit - 1}."
    said = [f"{expected} Received, smallest and largest:", ends]
    return tf.debugging.Assert(is_right, said)
