"""Multiple choice, in which questions can have different numbers of choices."""

from collections.abc import Sequence
import dataclasses
import itertools
import numbers
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import Examples
from tf_adapters.heads.choice_layer import ChoiceLayer
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.linear import check_reads
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.registry import register
from tf_adapters.heads.vector_head import ValueHead
from tf_adapters.heads.vector_head import rounded
from tf_adapters.layers.banks.heads import ABSENT

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.tasks.task import Task


@register("choice")
@dataclasses.dataclass(frozen=True)
class Choice(ValueHead):
    """Scores each choice, with a softmax over the choices of a question.

    Each choice is a sequence of its own, `[CLS] question [SEP] choice [SEP]`.
    A linear unit computes the choice's score from one vector of the sequence
    (Devlin et al. 2019, section 4.4; Zellers et al. 2018).

    Attributes:
        blank: Placeholder for the choice in the question. If set, the first
            text is the part of the question before the blank, and the second
            is the choice and the part after it (Sakaguchi et al. 2020,
            arXiv:1907.10641, section 4.1). If `""` (default), the choice
            follows the question.
        reads: Vector that the linear unit reads: `"first_token"` (default) or
            `"pooled_output"`.
        dropout_rate: Rate of dropout before the linear unit. Defaults to 0.1.
        hidden_layer: See `TextHead`.
        hidden_dropout_rate: See `TextHead`.

    Examples:
        >>> head = heads.Choice()
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> choices = {k: np.stack([v] * 4, 1) for k, v in features.items()}
        >>> tuple(model(choices).shape)  # Two questions of four choices.
        (2, 4)
    """

    blank: str = ""
    reads: str = "first_token"
    dropout_rate: float = 0.1
    hidden_layer: HiddenLayer = "none"
    hidden_dropout_rate: float = 0.0

    signature = "choice"
    gives_logits = True
    feature_shape = (None, None, None)

    @classmethod
    def for_task(
        cls, task: "Task", encoder: "Encoder | None" = None, **settings: Any
    ) -> Self:
        """Creates the head for a task.

        `blank` is the placeholder, such as `_`, that marks the gap that each
        choice fills. If `settings` does not set it, the task's placeholder is
        used.
        """
        return cls(**{"blank": task.blank, **settings})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_reads(self.reads)

    def make_layer(self) -> ChoiceLayer:
        """Creates the layer that maps encoder outputs to scores."""
        return ChoiceLayer(
            self.reads,
            self.dropout_rate,
            **hidden_options(self),
            name="head",
        )

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts each row to an example with a sequence for each choice.

        Args:
            rows: List of dicts.
            fields: Keys of the question's texts, which are joined by spaces,
                followed by the key of the list of choices.
            packer: `TextPacker`.
            labeled: Whether rows have labels.
        """
        *texts, choices_field = fields
        choices = [row[choices_field] for row in rows]
        pairs = [
            self.texts(" ".join(row[field] for field in texts), choice)
            for row in rows
            for choice in row[choices_field]
        ]
        ids, segments = packer.tokenize_rows(
            [first for first, _ in pairs], [second for _, second in pairs]
        )
        return Examples(
            _grouped(ids, choices),
            segments and _grouped(segments, choices),
            self.targets(rows, choices_field) if labeled else None,
            source=choices,
            pad_id=packer.special_tokens.pad,
        )

    def texts(self, question: str, choice: str) -> tuple[str, str]:
        """Returns the two texts that are packed into a choice's sequence.

        They are the question and the choice. If `blank` is set, they are the
        part of the question before the blank, and the choice followed by the
        part after the blank.
        """
        if not self.blank:
            return question, choice
        before, _, after = question.partition(self.blank)
        # Strips ASCII spaces only, as an exported SavedModel does.
        spaces = " \t\n\r\f\v"
        return before.strip(spaces), (choice + after).strip(spaces)

    def targets(
        self, rows: list[dict[str, Any]], choices_field: str = "choices"
    ) -> np.ndarray:
        """Returns the indices of the correct choices, `(len(rows),)` int32.

        Raises:
            UserError: If a row's label is not an index of one of its choices.
                The message names the row.
        """
        return np.array(
            [
                _place(i, row["label"], len(row[choices_field]))
                for i, row in enumerate(rows)
            ],
            "int32",
        )

    def check_labels(
        self, labels: Any, ignored_class: int | None = None
    ) -> None:
        """Raises a `UserError` if a label is not the position of a choice.

        Whether a question has so many choices is not checked. `ignored_class`
        is also allowed. Labels of shape `(questions, choices)` are no positions
        and are not checked.
        """
        if labels.ndim > 1 and labels.shape[1:] != (1,):
            return
        labels = labels.reshape(-1)
        is_place = (labels % 1 == 0) & (labels >= 0)
        wrong = np.flatnonzero(~is_place & (labels != ignored_class))
        if len(wrong):
            raise _not_a_place(int(wrong[0]), labels[wrong[0]].item())

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the cross-entropy of each question, `(batch,)`."""
        return ops.sparse_categorical_crossentropy(
            targets, outputs, from_logits=True
        )

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """Returns the indices of the choices with the highest scores."""
        return np.array([int(np.argmax(row)) for row in outputs])

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with `target`, `predicted` and `probabilities`.

        The first two have the index of a choice for each question.
        `probabilities` has a list for each question, with an entry per choice.
        """
        there = [
            np.asarray(row)[np.asarray(row) > ABSENT / 2] for row in outputs
        ]
        return {
            **super().compare(outputs, targets),
            "probabilities": [
                rounded(scipy.special.softmax(row.astype("float64"))).tolist()
                for row in there
            ],
        }

    def decode(
        self, outputs: Tensor, source: list[list[str]]
    ) -> list[dict[str, Any]]:
        """Returns a list with a dict for each question.

        In the dict, `label` is the index of the predicted choice, `choice` is
        its text, and `probabilities` has an entry for each choice.
        """
        return [
            _decoded(np.asarray(row[: len(choices)], "float64"), choices)
            for row, choices in zip(outputs, source, strict=True)
        ]


def _decoded(scores: np.ndarray, choices: list[str]) -> dict[str, Any]:
    probabilities = scipy.special.softmax(scores)
    place = int(np.argmax(scores))
    return {
        "label": place,
        "choice": choices[place],
        "probabilities": [round(float(p), 6) for p in probabilities],
    }


def _grouped(
    sequences: list[np.ndarray], choices: list[list[str]]
) -> list[list[np.ndarray]]:
    """Splits the sequences of all choices into one list for each question.

    `choices` has the list of choices of each question.
    """
    remaining = iter(sequences)
    return [list(itertools.islice(remaining, len(c))) for c in choices]


def _place(row: int, label: Any, count: int) -> int:
    is_place = isinstance(label, numbers.Integral)
    if not is_place or not 0 <= int(label) < count:
        raise _not_a_place(row, label, f" to {count - 1}")
    return int(label)


def _not_a_place(row: int, label: Any, to_last: str = "") -> UserError:
    return UserError(
        f"Row {row} (the first is 0) has the label {shown(label)}; expected "
        f"the position of the right choice, from 0{to_last}. Leave out rows "
        "without a label."
    )
