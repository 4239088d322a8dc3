"""How far the adapter of each block moves each word's vectors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from typing import Any

from keras import ops
import numpy as np

from tf_adapters.common.types import Tensor
from tf_adapters.explain.scores import features_of
from tf_adapters.layers.context import Context
from tf_adapters.models import adapted_embeddings

if TYPE_CHECKING:
    from tf_adapters.explain.words import Input
    from tf_adapters.models.adapter_model import AdapterModel


def movements(
    model: AdapterModel, one: Input
) -> tuple[np.ndarray, dict[tuple[int, str], np.ndarray]]:
    """Measures how far each block's adapter moves each word, in one pass.

    Runs each block with and without its adapter on the same input, which is
    the adapted model's. The movement of a token is the length of the
    difference of the two outputs, divided by the length of the output without
    the adapter. A word's movement is the mean over its tokens.

    Returns:
        Array `(blocks, words)`; and a dict from `(block, place)` to an array
        `(words, members)` with the attention weights of a fusion's members. The
        array is empty if the method adds nothing to blocks.
    """
    moved, members = [], {}
    for block, (adapted, plain, probes) in enumerate(_passes(model, one)):
        distances = np.linalg.norm(adapted - plain, axis=-1)
        distances /= np.maximum(np.linalg.norm(plain, axis=-1), 1e-12)
        moved.append(one.per_word(distances, np.mean))
        for place, probe in probes.items():
            if "fusion_weights" in probe:
                weights = _text_vectors(model, probe["fusion_weights"]).T
                members[block, place] = one.per_word(weights, np.mean).T
    return np.array(moved).reshape(-1, len(one.words)), members


def _passes(
    model: AdapterModel, one: Input
) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """Yields each block's output with and without its adapter, and its probes.

    The outputs have shape `(tokens, width)`. Yields nothing if the method adds
    nothing to blocks.
    """
    if not any(model.slots):
        return
    encoder = model.encoder
    features = features_of(one, [np.arange(len(one.token_ids))])
    context = Context(ops.cast(features["padding_mask"], "int32"))
    with model.reparameterization.scope():
        x, context = adapted_embeddings.embed(encoder, features, context, False)
        for number, block in enumerate(encoder.blocks):
            y, probes = block(x, context=context, training=False)
            with model.without([number]):
                plain, _ = block(x, context=context, training=False)
            yield _text_vectors(model, y), _text_vectors(model, plain), probes
            x = y


def _text_vectors(model: AdapterModel, x: Tensor) -> np.ndarray:
    """Returns vectors of one text as an array, without inserted vectors."""
    x = adapted_embeddings.of_text(model.encoder, ops.cast(x, "float32"))
    return np.asarray(x)[0]
