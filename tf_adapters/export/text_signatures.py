"""Signatures of a classification or regression model.

`serving_default` takes a string tensor `(batch,)` for each of the task's text
fields, with the names that `signature_inputs.input_names` returns. For
classification, the answer has `label` (string), `label_id` (int32) and
`probabilities` (float32, `(batch, classes)`). With several classes for each
text, the answer has `probabilities` and `is_predicted` (bool, `(batch,
classes)`). For regression, it has `score` (float32). These are the outputs of
the head's `answer`, with class names added to class ids.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters.export import signature_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.heads.head import Head
    from tf_adapters.models.adapter_model import AdapterModel


def text_function(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `serving_default`.

    It maps texts to a dict with the predicted classes or scores.
    """

    def from_texts(*texts: Tensor) -> dict[str, Tensor]:
        return answer(model.head, model(packer(*texts), training=False))

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `token_ids`.

    It maps token ids to a dict with the predicted classes or scores.
    """
    return signature_inputs.token_function(
        model, lambda x: answer(model.head, x)
    )


def answer(head: Head, outputs: Tensor) -> dict[str, Tensor]:
    """Converts a head's outputs to the dict that a client receives.

    It is the dict of the head's `answer`, with class names added to class ids.
    """
    found = head.answer(tf.cast(outputs, tf.float32))
    names = {
        key.removesuffix("_id"): tf.gather(tf.constant(head.labels), ids)
        for key, ids in found.items()
        if key.endswith("_id")
    }
    return {**names, **found}


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns two batches for warm-up: one text, and three texts.

    A batch is a dict from input name to value. Of the three texts, one is
    empty, one is short and one is truncated.
    """
    texts = ["", "A short text.", packer.too_long("A longer text, cut. ")]
    names = signature_inputs.input_names(text_fields)
    return [
        {**packer(*[batch] * len(names)), **dict.fromkeys(names, batch)}
        for batch in (texts[1:2], texts)
    ]
