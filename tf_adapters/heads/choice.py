"""The right one of several choices: any number of them, also mixed."""

import dataclasses
import itertools
import numbers

import keras
from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.data.encoded import Encoded
from tf_adapters.heads.head import register
from tf_adapters.heads.linear import ABSENT
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.linear import LinearLayer
from tf_adapters.heads.linear import check_reads
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.vector_head import ValueHead
from tf_adapters.heads.vector_head import rounded
from tf_adapters.layers.float32_layer import Float32Layer


@register("choice")
@dataclasses.dataclass(frozen=True)
class Choice(ValueHead):
    """One score for each choice, and a softmax over a question's choices.

    Each choice makes a sequence of its own, `[CLS] question [SEP] choice
    [SEP]`, and all share one linear unit on one vector (Devlin et al. 2019,
    section 4.4; Zellers et al. 2018).

    Attributes:
        blank: What stands in the question for the choice, or `""` (default)
            where the choice follows the question. With a blank the first text
            is what comes before it, and the second the choice and what comes
            after (Sakaguchi et al. 2020, arXiv:1907.10641, section 4.1).
        reads: `"first_token"` (default) or `"pooled_output"`.
        dropout_rate: Dropout before the linear unit. Defaults to 0.1.
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
    def for_task(cls, task, encoder=None, **settings):
        """Returns the head with the task's blank."""
        return cls(**{"blank": task.blank, **settings})

    def __post_init__(self):
        super().__post_init__()
        check_reads(self.reads)

    def make_layer(self):
        """Returns the layer from encoder outputs to scores."""
        return ChoiceLayer(
            self.reads,
            self.dropout_rate,
            **hidden_options(self),
            name="head",
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each row, with a sequence for each choice.

        Args:
            rows: List of dicts.
            fields: Keys of the question's texts, which are joined by spaces,
                and last the key of the list of choices.
            packer: `TextPacker`.
            labelled: Whether rows have labels.
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
        return Encoded(
            _grouped(ids, choices),
            segments and _grouped(segments, choices),
            self.targets(rows, choices_field) if labelled else None,
            source=choices,
        )

    def texts(self, question, choice):
        """Returns the two texts of a choice."""
        if not self.blank:
            return question, choice
        before, _, after = question.partition(self.blank)
        # ASCII only, as in a SavedModel.
        spaces = " \t\n\r\f\v"
        return before.strip(spaces), (choice + after).strip(spaces)

    def targets(self, rows, choices_field="choices"):
        """Returns the places of the right choices, `(len(rows),)` int32.

        Raises:
            UserError: If a row has no label or one that is no place among
                its choices; names the row.
        """
        return np.array(
            [
                _place(i, row["label"], len(row[choices_field]))
                for i, row in enumerate(rows)
            ],
            "int32",
        )

    def loss(self, targets, outputs):
        """Returns the cross-entropy of each question, `(batch,)`."""
        return ops.sparse_categorical_crossentropy(
            targets, outputs, from_logits=True
        )

    def predictions(self, outputs):
        """Returns the places of the choices with the highest scores."""
        return np.array([int(np.argmax(row)) for row in outputs])

    def compare(self, outputs, targets, source=None):
        """Returns what `ValueHead` does, and the choices' probabilities."""
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

    def decode(self, outputs, source):
        """Returns one dict for each question, for people and JSON."""
        return [
            _decoded(np.asarray(row[: len(choices)], "float64"), choices)
            for row, choices in zip(outputs, source, strict=True)
        ]


def _decoded(scores, choices):
    probabilities = scipy.special.softmax(scores)
    place = int(np.argmax(scores))
    return {
        "label": place,
        "choice": choices[place],
        "probabilities": [round(float(p), 6) for p in probabilities],
    }


def _grouped(sequences, choices):
    """Returns the sequences of each row as a list."""
    remaining = iter(sequences)
    return [list(itertools.islice(remaining, len(c))) for c in choices]


def _place(row, label, count):
    is_place = isinstance(label, numbers.Integral)
    if not is_place or not 0 <= label < count:
        raise UserError(
            f"Row {row} (the first is 0) has the label {shown(label)}; "
            f"expected the place of the right choice, from 0 to {count - 1}. "
            "Leave out rows without a label."
        )
    return label


@keras.saving.register_keras_serializable("tf_adapters")
class ChoiceLayer(Float32Layer):
    """One linear unit, or two layers, for all choices.

    Args:
        reads: See `LinearLayer`.
        dropout_rate: See `LinearLayer`.
        hidden_activation: See `LinearLayer`.
        hidden_dropout_rate: See `LinearLayer`.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns for sequences of all
            choices, and `padding_mask` `(batch, choices, tokens)`. A choice
            without a token is none.
        seeds: `StatelessSeeds` in training, else `None`.

    Returns:
        Float32 tensor `(batch, choices)`, `ABSENT` where there is no choice.
    """

    def __init__(
        self,
        reads,
        dropout_rate,
        hidden_activation=None,
        hidden_dropout_rate=0.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.linear = LinearLayer(
            1,
            reads,
            dropout_rate,
            hidden_activation,
            hidden_dropout_rate,
            name="score",
        )

    def build(self, input_shape):
        self.linear.build(input_shape)

    @property
    def output_shape(self):
        """For Keras's `summary`."""
        return (None, None)

    @property
    def kernel_after_dropout(self):
        """See `LinearLayer`."""
        return self.linear.kernel_after_dropout

    def call(self, outputs, seeds=None):
        mask = outputs["padding_mask"]
        if len(mask.shape) != 3:
            raise UserError(
                "A head of choices takes inputs of shape (batch, choices, "
                f"tokens). Received: inputs of shape {tuple(mask.shape)}."
            )
        scores = self.linear(outputs, seeds=seeds)
        scores = ops.reshape(scores, ops.shape(mask)[:2])
        is_there = ops.any(ops.cast(mask, "bool"), axis=-1)
        return ops.where(is_there, scores, ABSENT)
