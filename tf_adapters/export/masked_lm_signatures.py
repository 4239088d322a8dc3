"""Signatures of masked language modelling.

`serving_default` takes a string tensor `(batch,)` for each of the task's text
fields, named as in `input_names`, with the mask token wherever a token is asked
for. The answer is `positions` (int32, `(batch, masks)`, the places of the masks
among the input's tokens, filled up with -1), `tokens` (string, `(batch, masks,
num_best)`, filled up with "") and `token_id` (int32, filled up with -1), the
likeliest first, and their `probabilities` (float32, filled up with 0). A mask
beyond the longest input is not there. `token_ids` answers the same without
`tokens`.
"""

import tensorflow as tf

from tf_adapters.data.encoded import IGNORED
from tf_adapters.data.tokens import mask_tokens
from tf_adapters.data.tokens import vocabulary
from tf_adapters.export import signature_inputs


def text_function(model, packer, text_fields):
    """Returns the traced function from texts to the tokens of their masks."""
    packer = packer.reading_masks()
    size = model.head.vocabulary_size
    texts_of_tokens = vocabulary.token_texts(packer.tokenizer, size)

    def from_texts(*texts):
        if len(texts) > 2:  # As in training.
            first = tf.strings.strip(tf.strings.join(texts[:-1], " "))
            texts = (first, texts[-1])
        answer = _answer(model, packer.mask_id, packer(*texts))
        ids = answer["token_id"]
        tokens = tf.gather(tf.constant(texts_of_tokens), tf.maximum(ids, 0))
        return {"tokens": tf.where(ids == IGNORED, "", tokens), **answer}

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def token_function(model, packer):
    """Returns the traced function from token ids to the tokens of masks."""
    mask_id = packer.mask_id
    return signature_inputs.features_function(
        model, lambda features: _answer(model, mask_id, features)
    )


def _answer(model, mask_id, features):
    """Returns what a client gets, from what the packer makes."""
    # In an empty batch Keras's `take_along_axis` cannot take nothing.
    no_rows = tf.cast(tf.shape(features["token_ids"])[0] == 0, tf.int32)
    max_masks = tf.maximum(
        mask_tokens.count_mask_tokens(features, mask_id), no_rows
    )
    features = mask_tokens.find_mask_tokens(features, mask_id, max_masks)
    outputs = model(features, training=False)
    there = features["masked_positions"][..., tf.newaxis] != IGNORED
    return {
        "positions": features["masked_positions"],
        "token_id": tf.cast(outputs[..., 1], tf.int32),
        "probabilities": tf.where(there, outputs[..., 0], 0.0),
    }


def warmup_inputs(packer, text_fields):
    """Returns inputs of one text and of several, with and without masks."""
    short = f"A {packer.mask} text."
    texts = ["", short, packer.too_long(f"{short} {short} ")]
    names = signature_inputs.input_names(text_fields)
    packer = packer.reading_masks()
    return [
        {**packer(*[batch] * min(2, len(names))), **dict.fromkeys(names, batch)}
        for batch in (texts[1:2], texts)
    ]
