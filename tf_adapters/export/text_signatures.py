"""Signatures of a classification or a regression.

`serving_default` takes a string tensor `(batch,)` for each of the task's text
fields, named as in `input_names`. The answer is `label` (string), `label_id`
(int32) and `probabilities` (float32, `(batch, classes)`), or for regression
`score` (float32): what the head's `answer` returns, and the classes' names.
"""

import tensorflow as tf

from tf_adapters.export import signature_inputs


def text_function(model, packer, text_fields):
    """Returns the traced function from texts to an answer."""

    def from_texts(*texts):
        return answer(model.head, model(packer(*texts), training=False))

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def token_function(model, packer):
    """Returns the traced function from token ids to an answer."""
    return signature_inputs.token_function(
        model, lambda x: answer(model.head, x)
    )


def answer(head, outputs):
    """Returns what a client gets, from the head's outputs."""
    found = head.answer(tf.cast(outputs, tf.float32))
    names = {
        key.removesuffix("_id"): tf.gather(tf.constant(head.labels), ids)
        for key, ids in found.items()
        if key.endswith("_id")
    }
    return {**names, **found}


def warmup_inputs(packer, text_fields):
    """Returns inputs of one text and of several, short and cut."""
    texts = ["", "A short text.", packer.too_long("A longer text, cut. ")]
    names = signature_inputs.input_names(text_fields)
    return [
        {**packer(*[batch] * len(names)), **dict.fromkeys(names, batch)}
        for batch in (texts[1:2], texts)
    ]
