"""Traces the functions of a SavedModel for inputs of given names and shapes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters.export import request_checks

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence

    from tf_adapters.common.types import Tensor
    from tf_adapters.models.adapter_model import AdapterModel


def input_names(text_fields: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of the inputs of `serving_default`.

    They are the text fields, or `text_1`, `text_2` if one of the fields is not
    a valid name for an input of a graph ("my text", "1st").
    """
    are_names = all(
        re.fullmatch(r"(?!self$)[A-Za-z][A-Za-z0-9_]*", field)
        for field in text_fields
    )
    # Names of nodes in a graph must not differ by case alone.
    if are_names and len({field.lower() for field in text_fields}) == len(
        text_fields
    ):
        return tuple(text_fields)
    return tuple(f"text_{i}" for i in range(1, len(text_fields) + 1))


def text_function(
    function: Callable[..., dict[str, Tensor]],
    names: Sequence[str],
    last_rank: int = 1,
) -> tf.types.experimental.ConcreteFunction:
    """Traces a function of texts, with checks of its inputs.

    Args:
        function: Function to trace. It maps string tensors `(batch,)` to a
            dict.
        names: Names of its inputs, in order.
        last_rank: Number of dimensions of the last input. Default: 1.
    """
    ranks = [*[1] * (len(names) - 1), last_rank]

    @tf.function(autograph=False)
    def from_texts(*texts: Tensor) -> dict[str, Tensor]:
        return function(*request_checks.checked_texts(names, texts))

    return from_texts.get_concrete_function(
        *(
            tf.TensorSpec([None] * rank, tf.string, name)
            for name, rank in zip(names, ranks, strict=True)
        )
    )


def token_function(
    model: AdapterModel,
    answer: Callable[[Tensor], dict[str, Tensor]],
    rank: int = 2,
) -> tf.types.experimental.ConcreteFunction:
    """Returns a traced function that answers token ids with a model.

    Args:
        model: `AdapterModel`.
        answer: Function that maps the model's outputs to a dict.
        rank: Number of dimensions of the inputs. Default: 2.
    """
    return features_function(
        model, lambda features: answer(model(features, training=False)), rank
    )


def features_function(
    model: AdapterModel,
    function: Callable[[dict[str, Tensor]], dict[str, Tensor]],
    rank: int = 2,
) -> tf.types.experimental.ConcreteFunction:
    """Traces a function of token features, with checks of its inputs.

    Args:
        model: `AdapterModel`. Its backbone determines the inputs.
        function: Function to trace. It maps a dict of features to a dict.
        rank: Number of dimensions of the inputs. Default: 2.
    """
    names = ["token_ids", "padding_mask"]
    backbone = model.encoder_info.backbone
    if "segment_ids" in {tensor.name for tensor in backbone.inputs}:
        names.append("segment_ids")

    @tf.function(autograph=False)
    def from_tokens(*inputs: Tensor) -> dict[str, Tensor]:
        return function(
            request_checks.checked_tokens(names, inputs, model.encoder)
        )

    return from_tokens.get_concrete_function(
        *(tf.TensorSpec([None] * rank, tf.int32, name) for name in names)
    )
