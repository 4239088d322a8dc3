"""Defines the `tf.Module` that is saved as a SavedModel of many tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters.export import bank_answers
from tf_adapters.export import request_checks
from tf_adapters.export import saved_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tf_adapters import heads
    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.models.bank_model import BankModel
    from tf_adapters.tasks.task import Task

INPUTS = ("text", "text_pair", "task")


class ManyTasksModule(tf.Module):
    """Module with the function `serve`, its weights and its lookup tables.

    `serve` takes string tensors with a text, a second text and the name of a
    task for each row. It answers each row with the adapter of its task.
    """

    def __init__(
        self, bank: BankModel, packer: TextPacker, tasks: Sequence[Task]
    ) -> None:
        super().__init__()
        self.tokenizer = saved_model.resources(packer.tokenizer)
        self.table = tf.lookup.StaticHashTable(
            tf.lookup.KeyValueTensorInitializer(
                [task.name for task in tasks],
                range(len(tasks)),
                value_dtype=tf.int32,
            ),
            default_value=-1,
        )
        labels = [m.head.labels for m in bank.members]
        width = max(1, *map(len, labels))
        chooses = [chooses_a_class(m.head) for m in bank.members]
        filled = [[*names, *[""] * (width - len(names))] for names in labels]

        @tf.function(
            autograph=False,
            input_signature=[
                tf.TensorSpec([None], tf.string, n) for n in INPUTS
            ],
        )
        def serve(
            text: Tensor, text_pair: Tensor, task: Tensor
        ) -> dict[str, Tensor]:
            text, text_pair, task = request_checks.checked_texts(
                INPUTS, (text, text_pair, task)
            )
            found = self.table.lookup(task)
            ids = tf.maximum(found, 0)
            is_pair = tf.gather([len(t.text_fields) > 1 for t in tasks], ids)
            features = packer(text, text_pair, is_pair=is_pair)
            outputs = bank({**features, "adapter_ids": ids}, training=False)
            outputs = outputs[:, :width]
            answers = _answers(
                outputs,
                tf.gather([len(names) for names in labels], ids),
                tf.gather(filled, ids),
                tf.gather(chooses, ids),
            )
            answers |= bank_answers.compute(bank, outputs, ids)
            return _of_known_tasks(answers, found, task)

        self.serve = serve
        concrete = serve.get_concrete_function()
        self.weights = list({id(v): v for v in concrete.variables}.values())


def chooses_a_class(head: heads.Head) -> bool:
    """Returns whether a head predicts exactly one class for each row."""
    outputs = tf.zeros((1, max(1, len(head.labels))))
    return "label_id" in head.answer(outputs)


def _answers(
    outputs: Tensor, num_labels: Tensor, labels: Tensor, chooses: Tensor
) -> dict[str, Tensor]:
    """Returns a dict with each row's predicted class and its task's classes.

    `chooses` is true for rows whose head predicts exactly one class. Other rows
    have no predicted class: "" and -1. If a row's task is unknown, its values
    are arbitrary.
    """
    label_ids = tf.argmax(outputs, axis=-1, output_type=tf.int32)
    label = tf.gather(labels, label_ids, batch_dims=1)
    return {
        "label": tf.where(chooses, label, ""),
        "label_id": tf.where(chooses, label_ids, -1),
        "num_labels": num_labels,
        "labels": labels,
    }


def _of_known_tasks(
    answers: dict[str, Tensor], found: Tensor, task: Tensor
) -> dict[str, Tensor]:
    """Adds `status` to answers, and clears the answers for unknown tasks.

    `found` has the index of each row's task, or -1 if the task is unknown.
    """
    known = found >= 0
    empty = {"label_id": -1, "label": "", "labels": ""}

    def cleared(name: str, value: Tensor) -> Tensor:
        condition = known[:, None] if value.shape.rank == 2 else known
        nothing = tf.constant(empty.get(name, 0), value.dtype)
        return tf.where(condition, value, nothing)

    message = tf.strings.join(["unknown task `", task, "`"])
    return {
        "status": tf.where(known, "", message),
        **{name: cleared(name, value) for name, value in answers.items()},
    }
