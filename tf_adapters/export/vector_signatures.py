"""Signatures of a model that turns texts into vectors.

`encode` takes `text`, a string tensor `(batch,)`, and answers with `vector`,
float32 `(batch, width)`. `token_ids` answers with the same for tensors
`(batch, tokens)`.

`serving_default` takes a string tensor `(batch,)` for each of the task's text
fields. Two or three texts of a row are compared: the answer has `score`, the
cosine of the first two, and for a third text `negative_score`. If the model was
exported for single texts, the answer has `vector`.
"""

import tensorflow as tf

from tf_adapters.export import signature_inputs
from tf_adapters.export import text_signatures

ENCODE_SIGNATURE = "encode"
_NAME = "text"


def text_function(model, packer, text_fields):
    """Returns a traced function from the texts of rows to an answer."""

    def from_texts(*texts):
        return _answer(model, _features(packer, texts))

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def further_functions(model, packer):
    """Returns a dict with the traced function from texts to vectors."""

    def from_texts(texts):
        return _answer(model, _features(packer, [texts]))

    function = signature_inputs.text_function(from_texts, (_NAME,))
    return {ENCODE_SIGNATURE: function}


def token_function(model, packer):
    """Returns a traced function from token ids to vectors."""
    return signature_inputs.features_function(
        model,
        lambda features: _answer(
            model, {name: x[:, tf.newaxis] for name, x in features.items()}
        ),
    )


def _answer(model, features):
    return model.head.answer(
        tf.cast(model(features, training=False), "float32")
    )


def _features(packer, texts):
    """Returns features `(batch, texts, tokens)` of the texts of each row."""
    features = packer(tf.reshape(tf.stack(texts, axis=1), [-1]))
    rows, count = tf.shape(texts[0])[0], len(texts)
    return {
        name: tf.reshape(x, [rows, count, tf.shape(x)[1]])
        for name, x in features.items()
    }


def warmup_inputs(packer, text_fields):
    """Returns warm-up inputs with one row and with three."""
    names = signature_inputs.input_names(text_fields)
    return [
        {**dict.fromkeys(names, inputs[_NAME]), **inputs}
        for inputs in text_signatures.warmup_inputs(packer, (_NAME,))
    ]
