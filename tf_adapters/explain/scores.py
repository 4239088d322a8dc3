"""Computes the scores of answers, and which words they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from keras import ops
import numpy as np

from tf_adapters.common.types import Tensor
from tf_adapters.explain import gradients
from tf_adapters.layers.context import Context
from tf_adapters.models import adapted_embeddings
from tf_adapters.models import frozen_blocks

if TYPE_CHECKING:
    from tf_adapters.explain.words import Input
    from tf_adapters.heads.explained import Explained
    from tf_adapters.models.adapter_model import AdapterModel

# Inputs in a forward pass.
_BATCH_SIZE = 32


def features_of(one: Input, kept: Sequence[np.ndarray]) -> dict[str, Tensor]:
    """Returns the features of an input, once for each selection of its tokens.

    Args:
        one: `Input`.
        kept: List with the indices of the kept tokens of each row. Shorter
            rows are padded, and their padding is masked.
    """
    length = max(map(len, kept))
    padded = np.array([[*row, *[0] * (length - len(row))] for row in kept])
    mask = np.arange(length) < np.array([[len(row)] for row in kept])
    features = {
        "token_ids": one.token_ids[padded],
        "padding_mask": mask.astype("int32"),
    }
    if one.segment_ids is not None:
        features["segment_ids"] = one.segment_ids[padded]
    return {k: ops.convert_to_tensor(v) for k, v in features.items()}


def outputs_of(
    model: AdapterModel, one: Input, kept: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """Returns a model's outputs for an input, `(rows, ...)`.

    Args:
        model: `AdapterModel`.
        one: `Input`.
        kept: See `features_of`. `None` (default) for one row with all tokens.
    """
    if kept is None:
        kept = [np.arange(len(one.token_ids))]
    outputs = model(features_of(one, kept), training=False)
    return np.asarray(outputs)


def score(
    answer: Explained, outputs: Tensor, tokens: np.ndarray | None = None
) -> Tensor:
    """Returns the score of an answer in each row of outputs, `(batch,)`.

    Args:
        answer: `Explained`.
        outputs: `(batch, ...)`, outputs of the head's layer.
        tokens: `(batch, len(answer.tokens))`. Indices of the answer's tokens in
            each row. `None` (default) for `answer.tokens` in all rows.
    """
    if not answer.tokens:
        return answer.score(outputs)
    if tokens is None:
        tokens = np.array([answer.tokens] * outputs.shape[0])
    read = ops.take_along_axis(outputs, tokens[..., None], axis=1)
    return answer.score(read)


def gradient_times_input(
    model: AdapterModel, one: Input, answers: Sequence[Explained]
) -> np.ndarray:
    """Multiplies the gradient of each answer's score by the token's vector.

    The vectors are the input of the encoder's first block. The products are
    summed over the dimensions of a vector, and over the tokens of a word.

    Returns:
        Array `(answers, words)`.
    """
    # A text with many tags has many answers, which do not fit into memory.
    parts = [
        _gradient_times_input(model, one, answers[start : start + _BATCH_SIZE])
        for start in range(0, len(answers), _BATCH_SIZE)
    ]
    return np.concatenate(parts)


def _gradient_times_input(
    model: AdapterModel, one: Input, answers: Sequence[Explained]
) -> np.ndarray:
    # A row for each answer gives their gradients in one backward pass.
    features = features_of(one, [np.arange(len(one.token_ids))] * len(answers))
    context = Context(features["padding_mask"])
    with model.reparameterization.scope():
        x, _ = adapted_embeddings.embed(model.encoder, features, context, False)
    name = frozen_blocks.input_name(0)

    def scores(vectors: Tensor) -> Tensor:
        outputs = model({**features, name: vectors}, training=False)
        rows = [outputs[i : i + 1] for i in range(len(answers))]
        pairs = zip(answers, rows, strict=True)
        return ops.concatenate([score(answer, row) for answer, row in pairs])

    gradient = gradients.gradient(scores, x)
    products = gradient * np.asarray(ops.cast(x, "float32"))
    products = adapted_embeddings.of_text(model.encoder, products)
    return one.per_word(np.asarray(products).sum(axis=-1))


def left_out(
    model: AdapterModel, one: Input, answers: Sequence[Explained]
) -> np.ndarray:
    """Returns by how much each word's absence lowers the score of each answer.

    The tokens of a word are removed from the input.

    Returns:
        Array `(answers, words)`: the score of the complete input minus the
        score without the word. NaN for special tokens, and for words whose own
        outputs the answer depends on.
    """
    everything = np.arange(len(one.token_ids))
    found = np.full((len(answers), len(one.words)), np.nan)
    places = np.flatnonzero(~one.is_special)
    whole = outputs_of(model, one)
    before = [float(score(answer, whole)[0]) for answer in answers]
    for start in range(0, len(places), _BATCH_SIZE):
        words = places[start : start + _BATCH_SIZE]
        kept = [everything[one.indices != word] for word in words]
        outputs = outputs_of(model, one, kept)
        for number, answer in enumerate(answers):
            tokens = [np.searchsorted(row, answer.tokens) for row in kept]
            is_there = [np.isin(answer.tokens, row).all() for row in kept]
            tokens = np.minimum(np.array(tokens), outputs.shape[1] - 1)
            after = np.asarray(score(answer, outputs, tokens.astype(int)))
            found[number, words] = np.where(
                is_there, before[number] - after, np.nan
            )
    return found
