"""Signatures of masked language modeling.

`serving_default` takes a string tensor `(batch,)` for each of the task's text
fields, with the names that `signature_inputs.input_names` returns. Texts
contain the mask token at each position to predict. The answer has

- `positions` (int32, `(batch, masks)`): the position of each mask among the
  tokens of the input, padded with -1.
- `tokens` (string, `(batch, masks, num_best)`): the most likely tokens, best
  first, padded with "".
- `token_id` (int32, same shape): their ids, padded with -1.
- `probabilities` (float32, same shape): their probabilities, padded with 0.

Masks beyond the maximum length are dropped. `token_ids` takes token ids and
gives the same answer without `tokens`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.data.examples import IGNORED
from tf_adapters.data.tokens import mask_tokens
from tf_adapters.data.tokens import vocabulary
from tf_adapters.export import signature_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.models.adapter_model import AdapterModel


def text_function(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `serving_default`.

    It maps texts that contain mask tokens to the most likely tokens at each
    mask, as a dict.
    """
    packer = packer.reading_masks()
    head: Any = model.head
    size = head.vocabulary_size
    texts_of_tokens = vocabulary.token_texts(packer.tokenizer, size)

    def from_texts(*texts: Tensor) -> dict[str, Tensor]:
        if len(texts) > 2:  # Join texts as in training.
            first = tf.strings.strip(tf.strings.join(texts[:-1], " "))
            texts = (first, texts[-1])
        answer = _answer(model, packer.mask_id, packer(*texts))
        ids = answer["token_id"]
        tokens = tf.gather(tf.constant(texts_of_tokens), tf.maximum(ids, 0))
        return {"tokens": tf.where(ids == IGNORED, "", tokens), **answer}

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names)


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `token_ids`.

    It maps token ids, some of which are the mask token's, to the ids of the
    most likely tokens at each mask, as a dict.
    """
    mask_id = packer.mask_id
    return signature_inputs.features_function(
        model, lambda features: _answer(model, mask_id, features)
    )


def _answer(
    model: AdapterModel, mask_id: int, features: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Runs the model on features, and returns the dict that a client receives.

    `mask_id` is the id of the mask token.
    """
    # Keras's `take_along_axis` fails on an empty batch without masks.
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


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns two batches for warm-up: one text, and three texts.

    A batch is a dict from input name to value. Some texts contain mask tokens
    and others do not.
    """
    short = f"A {packer.mask} text."
    texts = ["", short, packer.too_long(f"{short} {short} ")]
    names = signature_inputs.input_names(text_fields)
    packer = packer.reading_masks()
    return [
        {**packer(*[batch] * min(2, len(names))), **dict.fromkeys(names, batch)}
        for batch in (texts[1:2], texts)
    ]
