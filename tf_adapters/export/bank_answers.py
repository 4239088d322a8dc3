"""The answers of a bank of tasks, computed in the graph of an export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from keras import ops

if TYPE_CHECKING:
    from tf_adapters.common.types import Tensor
    from tf_adapters.models.bank_model import BankModel


def compute(bank: BankModel, outputs: Tensor, ids: Tensor) -> dict[str, Tensor]:
    """Returns what each row's head makes of the outputs.

    Each head is asked for all rows, and each row takes the values of its own
    head. That costs little: a head's answer is a few operations on the outputs
    of a row.

    Args:
        bank: `BankModel`.
        outputs: Outputs of the bank, `(batch, outputs of the widest head)`.
        ids: `(batch,)` indices of members.

    Returns:
        Dict of float tensors: `probabilities`, as wide as `outputs`, with 0 for
        the classes that a narrower head does not have, and `score` `(batch,)`.
        Values that the head of a row does not give are 0.
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
