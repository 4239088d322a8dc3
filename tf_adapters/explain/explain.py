"""Explains the answers of an `AdapterModel`."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.explain import blocks
from tf_adapters.explain import scores
from tf_adapters.explain import words
from tf_adapters.explain.explanation import Explanation
from tf_adapters.explain.explanation import Variant

if TYPE_CHECKING:
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.explain.words import Input
    from tf_adapters.heads.explained import Explained
    from tf_adapters.models.adapter_model import AdapterModel


def explain_rows(
    model: AdapterModel,
    packer: Packer,
    rows: Sequence[dict[str, Any]],
    fields: Sequence[str],
    disabled: Callable[[], AbstractContextManager[AdapterModel]],
    label: str | None = None,
) -> list[Explanation]:
    """Explains a model's answers, a row at a time.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` or `PythonPacker`.
        rows: List of dicts with the texts.
        fields: Keys of the texts.
        disabled: Function that returns a context manager within which the
            model's adapter is disabled. It gives an `AdapterModel` with the
            same head and no adapter.
        label: Name of the class to explain, or `None` (default) for the answer.

    Raises:
        UserError: If answers of the head cannot be explained, the row is too
            long, or the model is folded.
    """
    model.check_not_folded()
    inputs = [words.make_input(model.head, r, fields, packer) for r in rows]
    answers = [_answers(model, one, label) for one in inputs]
    with disabled() as plain:
        without = [
            _variant("without the adapter", plain, one, some)
            for one, some in zip(inputs, answers, strict=True)
        ]
    return [
        _explain(model, *found)
        for found in zip(inputs, answers, without, strict=True)
    ]


def _answers(
    model: AdapterModel, one: Input, label: str | None
) -> list[Explained]:
    (output,) = scores.outputs_of(model, one)
    answers = model.head.explained(output, one.source, label)
    if not answers:
        raise UserError("The model gives no answer to this text to explain.")
    return answers


def _explain(
    model: AdapterModel,
    one: Input,
    answers: Sequence[Explained],
    without: Variant,
) -> Explanation:
    moved, member_weights = blocks.movements(model, one)
    return Explanation(
        one.words,
        tuple(_name(answer, one) for answer in answers),
        answers[0].score_name,
        scores.gradient_times_input(model, one, answers),
        scores.left_out(model, one, answers),
        moved,
        (
            _variant("complete", model, one, answers),
            without,
            *_variants(model, one, answers),
        ),
        tuple(member.name for member in model.members if member_weights),
        member_weights,
    )


def _name(answer: Explained, one: Input) -> str:
    """Returns the name of an answer; for a tag, with the word that it is of."""
    if len(answer.tokens) != 1:
        return answer.name
    return f"{one.words[one.indices[answer.tokens[0]]]}: {answer.name}"


def _variants(
    model: AdapterModel, one: Input, answers: Sequence[Explained]
) -> Iterator[Variant]:
    """Yields the answer without the adapters of all blocks, and of each."""
    filled = [block for block, slots in enumerate(model.slots) if slots]
    left_out = {"without all blocks": filled} if len(filled) > 1 else {}
    left_out |= {f"without block {block + 1}": [block] for block in filled}
    for name, without in left_out.items():
        with model.without(without):
            yield _variant(name, model, one, answers)


def _variant(
    name: str,
    model: AdapterModel,
    one: Input,
    answers: Sequence[Explained],
) -> Variant:
    outputs = scores.outputs_of(model, one)
    (answer,) = model.head.decode(list(outputs), one.source)
    found = [float(scores.score(one, outputs)[0]) for one in answers]
    return Variant(name, answer, np.array(found))
