"""The answers in a model's output that an explanation takes apart."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
import dataclasses

from keras import ops

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor


@dataclasses.dataclass(frozen=True)
class Explained:
    """An answer of a head, and how to compute its score from the outputs.

    Attributes:
        name: The answer, such as the name of a class.
        score_name: What the score is: `"log-odds"`, `"number"` or `"logits"`.
        score: Function that returns the answer's score for each example,
            `(batch,)`. It takes the head's outputs `(batch, ...)` or, if
            `tokens` is not empty, `(batch, len(tokens), outputs)`.
        tokens: Indices of the tokens whose outputs the answer depends on. `()`
            (default) if the head has a single output for an input.
    """

    name: str
    score_name: str
    score: Callable[[Tensor], Tensor]
    tokens: tuple[int, ...] = ()


def class_score(
    labels: Sequence[str],
    index: int,
    temperature: float = 1.0,
    tokens: tuple[int, ...] = (),
) -> Explained:
    """Returns the `Explained` of one of several exclusive classes.

    Its score is the class's log-odds, `log(p / (1 - p))`.

    Args:
        labels: Names of all classes.
        index: Index of the class.
        temperature: Number by which logits are divided. Defaults to 1.
        tokens: See `Explained`; at most one token.
    """

    def score(outputs: Tensor) -> Tensor:
        logits = outputs[:, 0] if tokens else outputs
        logits = logits / temperature
        others = [logits[:, :index], logits[:, index + 1 :]]
        rest = ops.logsumexp(ops.concatenate(others, axis=-1), axis=-1)
        return logits[:, index] - rest

    return Explained(labels[index], "log-odds", score, tokens)


def index_of(label: str | None, labels: Sequence[str], default: int) -> int:
    """Returns the index of a class to explain.

    Args:
        label: Name of the class, or `None` for `default`.
        labels: Names of all classes.
        default: Index of the predicted class.

    Raises:
        UserError: If no class has this name.
    """
    if label is None:
        return int(default)
    check_known("label", label, labels)
    return list(labels).index(label)


def label_score(label: str, index: int) -> Explained:
    """Returns the `Explained` of one of several labels that do not exclude.

    Its score is the logit of the label, which is its log-odds.

    Args:
        label: Name of the label.
        index: Index of the label.
    """
    return Explained(label, "log-odds", lambda outputs: outputs[:, index])


def span_score(outputs: Tensor) -> Tensor:
    """Returns the score of an answer: the sum of two logits, `(batch,)`.

    Args:
        outputs: `(batch, 2, 2)`. Both logits (of being an answer's first token,
            and of being its last one) of the answer's first and last token.
    """
    return outputs[:, 0, 0] + outputs[:, 1, 1]


def check_no_label(label: str | None) -> None:
    """Raises a `UserError` if a class is named for a head without classes."""
    if label is not None:
        raise UserError(
            "`label` names the class to explain, and this model predicts no "
            f"classes: leave it out. Received: label={shown(label)}"
        )


def cannot_explain(head: object) -> UserError:
    """Returns the error for a `Head` whose answers cannot be explained."""
    return UserError(
        "Only answers of heads for classes, several labels, numbers, tags and "
        f"spans can be explained. Received: {type(head).__name__}"
    )
