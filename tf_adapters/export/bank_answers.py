"""Computes a multi-task model's predictions as part of an exported graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras import ops

from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut

if TYPE_CHECKING:
    from tf_adapters.common.types import Tensor
    from tf_adapters.models.bank_model import BankModel


def check(bank: BankModel) -> None:
    """Raises an `AdapterError` if a bank of adapters cannot be exported.

    Raises:
        AdapterError: If a head predicts neither classes nor a number, or if
            adapters of the bank were removed or replaced, so that their ids are
            no longer 0, 1, 2 and so on.
    """
    for member in bank.members:
        head = member.head
        outputs = ops.zeros((1, max(1, len(head.labels))))
        if head.signature != "text" or not (
            {"probabilities", "score"} & set(head.answer(outputs))
        ):
            raise AdapterError(
                f"The head of {member.source} is a {heads.name_of(head)}, but "
                "one model for many tasks answers only with classes and "
                "numbers. Leave it out, and export it alone with "
                "--mode=export --model_dir=<its run>."
            )
    names = [member.name for member in bank.members]
    with bank.using(names) as used:
        if used.adapter_ids.tolist() != list(range(len(names))):
            raise AdapterError(
                "The bank's adapters were removed or replaced since it was "
                "loaded, and an export numbers them from 0. Load a bank of "
                f"the adapters to export. Received: {cut(names)}"
            )


def compute(bank: BankModel, outputs: Tensor, ids: Tensor) -> dict[str, Tensor]:
    """Computes the answer to each row with the head of the row's task.

    An answer consists of class probabilities or a score. Every head computes
    answers for all rows, and each row keeps the answer of its own head. That
    costs little: an answer is a few operations on the outputs of a row.

    Args:
        bank: `BankModel`.
        outputs: Outputs of the bank, `(batch, outputs of the widest head)`.
        ids: `(batch,)` indices in `bank.members`, one for each row.

    Returns:
        Dict of float tensors: `probabilities`, as wide as `outputs`, with 0 for
        the classes that a narrower head does not have, and `score` `(batch,)`.
        If the head of a row does not compute one of the two, it is 0.
    """
    probabilities = ops.zeros_like(outputs)
    score = ops.zeros_like(outputs[:, 0])
    for index, member in enumerate(bank.members):
        width = max(1, len(member.head.labels))
        answer = member.head.answer(outputs[:, :width])
        chosen = ops.equal(ids, index)
        if "score" in answer:
            score = ops.where(chosen, answer["score"], score)
        else:
            padding = ((0, 0), (0, outputs.shape[1] - width))
            filled = ops.pad(answer["probabilities"], padding)
            probabilities = ops.where(chosen[:, None], filled, probabilities)
    return {"probabilities": probabilities, "score": score}
