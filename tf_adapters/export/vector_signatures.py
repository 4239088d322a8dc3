"""Signatures of a model that turns texts into vectors.

`encode` takes `text`, a string tensor `(batch,)`, and returns `vector`, float32
`(batch, width)`. `token_ids` takes tensors `(batch, tokens)` and also returns
`vector`.

`serving_default` takes a string tensor `(batch,)` for each of the task's text
fields. If a row has two or three texts, they are compared: the answer has
`score`, the cosine of the first two, and, if there is a third text,
`negative_score`. If a row has one text, the answer has `vector`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters.export import signature_inputs
from tf_adapters.export import text_signatures

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.models.adapter_model import AdapterModel

ENCODE_SIGNATURE = "encode"
_NAME = "text"


def text_function(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `serving_default`.

    It maps the texts of rows to a dict with vectors or, for several texts per
    row, with cosine similarities.
    """

    def from_texts(*texts: Tensor) -> dict[str, Tensor]:
        return _answer(model, _features(packer, texts))

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def further_functions(
    model: AdapterModel, packer: TextPacker
) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Returns a dict with `encode`, a traced function from texts to vectors."""

    def from_texts(texts: Tensor) -> dict[str, Tensor]:
        return _answer(model, _features(packer, [texts]))

    function = signature_inputs.text_function(from_texts, (_NAME,))
    return {ENCODE_SIGNATURE: function}


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns a traced function from token ids to vectors."""
    return signature_inputs.features_function(
        model,
        lambda features: _answer(
            model, {name: x[:, tf.newaxis] for name, x in features.items()}
        ),
    )


def _answer(
    model: AdapterModel, features: dict[str, Tensor]
) -> dict[str, Tensor]:
    return model.head.answer(
        tf.cast(model(features, training=False), "float32")
    )


def _features(packer: TextPacker, texts: Sequence[Tensor]) -> dict[str, Tensor]:
    """Packs the texts of rows into features `(batch, texts, tokens)`.

    `texts` has a string tensor `(batch,)` for each text of a row.
    """
    features = packer(tf.reshape(tf.stack(texts, axis=1), [-1]))
    rows, count = tf.shape(texts[0])[0], len(texts)
    return {
        name: tf.reshape(x, [rows, count, tf.shape(x)[1]])
        for name, x in features.items()
    }


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns two batches for warm-up: one row, and three rows.

    A batch is a dict from input name to value.
    """
    names = signature_inputs.input_names(text_fields)
    return [
        {**dict.fromkeys(names, inputs[_NAME]), **inputs}
        for inputs in text_signatures.warmup_inputs(packer, (_NAME,))
    ]
