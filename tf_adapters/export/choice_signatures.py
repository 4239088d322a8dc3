"""Signatures of a multiple-choice model.

`serving_default` takes a string tensor `(batch,)` for each text field of the
question, and one of shape `(batch, choices)` for the choices. If a question has
fewer choices than others, the rest of its row is "". `token_ids` takes tensors
`(batch, choices, tokens)` and ignores choices without tokens.

The answer has `label_id` (int32, the index of the choice), `probabilities`
(float32, `(batch, choices)`) and, for texts, `label` (string, the choice
itself).
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.export import request_checks
from tf_adapters.export import signature_inputs

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.heads.choice import Choice
    from tf_adapters.models.adapter_model import AdapterModel


def text_function(
    model: AdapterModel, packer: TextPacker, text_fields: Sequence[str]
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `serving_default`.

    It maps the strings of questions and choices to the most likely choice and
    the probabilities of all choices, as a dict.
    """
    head: Any = model.head

    def from_texts(*texts: Tensor) -> dict[str, Tensor]:
        *question, choices = texts
        choices = request_checks.with_choices(choices)
        features = _features(head, packer, question, choices)
        answer = _answer(model(features, training=False))
        label = tf.gather(choices, answer["label_id"], batch_dims=1)
        return {"label": label, **answer}

    names = signature_inputs.input_names(text_fields)
    return signature_inputs.text_function(from_texts, names, last_rank=2)


def _features(
    head: Choice, packer: TextPacker, question: list[Tensor], choices: Tensor
) -> dict[str, Tensor]:
    """Packs questions and choices in a graph, as `Choice.encode` does.

    Returns a dict of features `(batch, choices, tokens)`.
    """
    shape = tf.shape(choices)
    question = tf.strings.join(question, " ")
    repeated = tf.repeat(question, shape[1])
    flat = tf.reshape(choices, [-1])
    features = packer(*_texts(head.blank, repeated, flat))
    is_there = tf.cast(flat != "", tf.int32)[:, tf.newaxis]
    features["padding_mask"] *= is_there
    return {
        name: tf.reshape(value, [shape[0], shape[1], tf.shape(value)[1]])
        for name, value in features.items()
    }


def _texts(
    blank: str, question: Tensor, choice: Tensor
) -> tuple[Tensor, Tensor]:
    """Returns the two texts that the encoder reads for each choice.

    This is `Choice.texts` in a graph. `blank` is the task's placeholder for the
    gap that a choice fills, such as "_". If it is not empty, the question is
    split at the placeholder, and the choice begins the second text.
    """
    if not blank:
        return question, choice
    parts = tf.strings.split(question, blank, maxsplit=1)
    before = parts[:, :1].to_tensor("", shape=[None, 1])[:, 0]
    after = parts[:, 1:].to_tensor("", shape=[None, 1])[:, 0]
    return (
        tf.strings.strip(before),
        tf.strings.strip(tf.strings.join([choice, after])),
    )


def token_function(
    model: AdapterModel, packer: TextPacker
) -> tf.types.experimental.ConcreteFunction:
    """Returns the traced function of the signature `token_ids`.

    It maps token ids to the index of the most likely choice and the
    probabilities of all choices, as a dict.
    """
    return signature_inputs.token_function(model, _answer, rank=3)


def _answer(outputs: Tensor) -> dict[str, Tensor]:
    """Converts the head's outputs to the dict that a client receives."""
    outputs = tf.cast(outputs, tf.float32)
    return {
        "label_id": tf.argmax(outputs, axis=-1, output_type=tf.int32),
        "probabilities": tf.nn.softmax(outputs),
    }


def warmup_inputs(
    packer: TextPacker, text_fields: Sequence[str]
) -> list[dict[str, Any]]:
    """Returns two batches for warm-up: one question, and two questions.

    A batch is a dict from input name to value. Some texts are short and others
    are truncated.
    """
    long = packer.too_long("A longer text, cut. ")
    questions = ["A question?", long]
    choices = [["yes", "no", ""], ["yes", "no", long]]
    *names, last = signature_inputs.input_names(text_fields)
    batches = []
    for count in (1, 2):
        flat = [text for row in choices[:count] for text in row]
        tokens = packer(
            [question for question in questions[:count] for _ in range(3)], flat
        )
        batches.append(
            {
                **{k: tf.reshape(v, [count, 3, -1]) for k, v in tokens.items()},
                **dict.fromkeys(names, questions[:count]),
                last: choices[:count],
            }
        )
    return batches
