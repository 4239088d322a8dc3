"""Heads that compute a vector for each text, such as `SentenceVector`."""

from collections.abc import Sequence
import dataclasses
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import Examples
from tf_adapters.heads.labels import check_number
from tf_adapters.heads.registry import register
from tf_adapters.heads.vector_head import ValueHead
from tf_adapters.layers.float32_layer import Float32Layer
from tf_adapters.layers.token_pooling import TokenPooling
from tf_adapters.layers.token_pooling import pool_tokens

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.layers.stateless_seeds import StatelessSeeds
    from tf_adapters.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class TextVectorHead(ValueHead):
    """Base class of heads whose outputs are vectors of texts.

    Each text of a row is a sequence of its own. Its vector has length 1, so the
    dot product of two vectors is their cosine. The head adds no weights.

    Attributes:
        token_pooling: How a text's token vectors become one vector: `"mean"`
            (default), or `"first_token"`.

    Examples:
        >>> head = heads.SentenceVector(token_pooling="first_token")
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> model(features).shape[0]  # Vectors of two single texts.
        2
    """

    token_pooling: TokenPooling = "mean"

    signature = "vectors"
    makes_vectors = True
    feature_shape = (None, None, None)

    @property
    def is_of_tokens(self) -> bool:
        """`False`: an output has a vector for each text, not for each token."""
        return False

    def targets(
        self, rows: list[dict[str, Any]], fields: Sequence[str]
    ) -> np.ndarray:
        """Returns an array with the target of each row."""
        raise NotImplementedError

    @property
    def reads(self) -> str:
        """The encoder's output that the head reads; see `Head`."""
        is_first = self.token_pooling == "first_token"
        return "first_token" if is_first else "sequence_output"

    def make_layer(self) -> "TextVectorLayer":
        """Creates the layer that maps encoder outputs to vectors."""
        return TextVectorLayer(self.token_pooling, name="head")

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts each row to an example with a sequence for each text.

        Args:
            rows: List of dicts.
            fields: Keys of the row's texts.
            packer: `TextPacker`.
            labeled: Whether to make targets.

        Raises:
            UserError: If `labeled` and a row has only one text.
        """
        if labeled:
            self.check_labeled_fields(fields)
        texts = [row[field] for row in rows for field in fields]
        ids, segments = packer.tokenize_rows(texts)
        return Examples(
            _grouped(ids, len(fields)),
            segments and _grouped(segments, len(fields)),
            self.targets(rows, fields) if labeled else None,
            pad_id=packer.special_tokens.pad,
        )

    def check_labeled_fields(self, fields: Sequence[str]) -> None:
        """Raises a `UserError` unless there are two or more text fields."""
        if len(fields) < 2:
            raise UserError(
                "A row needs two texts, whose vectors are compared. Received: "
                f"one text, `{fields[0]}`. A single text can be encoded only: "
                "`encode`."
            )

    def decode(
        self, outputs: Tensor, source: Any = None
    ) -> list[dict[str, Any]]:
        """Returns a list with a dict of rounded numbers for each row.

        Its keys are the keys of `answer`.
        """
        answers = self.answer(np.asarray(outputs, "float32"))
        answers = {
            name: np.round(ops.convert_to_numpy(value).astype("float64"), 6)
            for name, value in answers.items()
        }
        return [
            {name: value[row].tolist() for name, value in answers.items()}
            for row in range(len(outputs))
        ]

    def answer(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns a dict with `vector` for single texts, or `score` for pairs.

        The score is the cosine of the first text and the second one. If there
        is a third text, `negative_score` is its cosine with the first text.
        """
        if outputs.shape[1] == 1:
            return {"vector": outputs[:, 0]}
        names = ("score", "negative_score")[: outputs.shape[1] - 1]
        return {
            name: ops.sum(outputs[:, 0] * outputs[:, place], axis=-1)
            for place, name in enumerate(names, start=1)
        }


@register("sentence_vector")
@dataclasses.dataclass(frozen=True)
class SentenceVector(TextVectorHead):
    """Gives each text a vector; the cosine of two vectors predicts a score.

    The loss is the squared difference between the cosine and the score, which
    is scaled to the range from 0 to 1 (Reimers and Gurevych 2019,
    arXiv:1908.10084, section 3).

    Attributes:
        token_pooling: See `TextVectorHead`.
        lowest_score: Score that is scaled to 0. `None` (default): in a run, the
            minimum of the task's `label_range` if it is set, otherwise the
            smallest score in the training data. Outside of runs, 0.
        highest_score: Score that is scaled to 1. `None` (default): in a run,
            the maximum of `label_range` if it is set, otherwise the largest
            score in the training data. Outside of runs, 1.

    Examples:
        >>> head = heads.SentenceVector(lowest_score=0, highest_score=5)
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> pairs = {k: np.stack([v, v], 1) for k, v in features.items()}
        >>> vectors = model(pairs)  # Two pairs of texts.
        >>> vectors.shape[:2] == (2, 2)
        True
    """

    lowest_score: float | None = None
    highest_score: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        # A missing limit may still be read from the training data.
        if not self.must_be_in_range:
            self._check_range()

    def _check_range(self) -> None:
        low, high = self.score_range
        if low >= high:
            raise UserError(
                "`lowest_score` must be less than `highest_score`. Received: "
                f"lowest_score={shown(low)}, highest_score={shown(high)}"
            )

    @classmethod
    def for_task(
        cls, task: "Task", encoder: "Encoder | None" = None, **settings: Any
    ) -> Self:
        """Creates the head for a task.

        The defaults of `lowest_score` and `highest_score` are the limits of the
        task's `label_range`, if it has one.
        """
        low, high = task.label_range or (None, None)
        own = {"lowest_score": low, "highest_score": high}
        return cls(**{**own, **settings})

    def for_rows(self, rows: list[dict[str, Any]]) -> Self:
        """Returns a copy with the missing limits of scores, from training rows.

        A missing `lowest_score` becomes the smallest label, and a missing
        `highest_score` the largest.

        Raises:
            UserError: If the lower limit is then not less than the upper one,
                for example because all labels are equal.
        """
        labels = [row["label"] for row in rows]
        ends = {"lowest_score": min(labels), "highest_score": max(labels)}
        ends = {k: v for k, v in ends.items() if getattr(self, k) is None}
        return dataclasses.replace(self, **ends)

    @property
    def score_range(self) -> tuple[float, float]:
        """The scores that are scaled to 0 and to 1."""
        low, high = self.lowest_score, self.highest_score
        return 0.0 if low is None else low, 1.0 if high is None else high

    @property
    def must_be_in_range(self) -> bool:
        """Whether scores outside of the range are errors.

        `True` if a limit of the range was not set and has its default value.
        """
        return None in (self.lowest_score, self.highest_score)

    def scaled(self, scores: Any) -> Any:
        """Scales scores so that the limits in `score_range` become 0 and 1.

        `scores` is an array or a tensor.
        """
        self._check_range()
        low, high = self.score_range
        return (scores - low) / (high - low)

    def targets(
        self, rows: list[dict[str, Any]], fields: Sequence[str] | None = None
    ) -> np.ndarray:
        """Returns the scaled labels of rows, `(len(rows),)` float32.

        Raises:
            UserError: If a row's label is not a finite number, or if it is
                outside of `score_range` and `must_be_in_range` is `True`. The
                message names the row.
        """
        self._check_range()
        low, high = self.score_range
        for place, row in enumerate(rows):
            check_number(place, row["label"])
            if self.must_be_in_range and not low <= row["label"] <= high:
                raise UserError(
                    f"Row {place} (the first is 0) has the score "
                    f"{shown(row['label'])}; expected one from {low:g} to "
                    f"{high:g}. Give the head the range of the scores, such as "
                    "`SentenceVector(lowest_score=0, highest_score=5)`."
                )
        labels = np.array([row["label"] for row in rows], "float64")
        return self.scaled(labels).astype("float32")

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the squared error of each pair's cosine, `(batch,)`."""
        targets = ops.cast(ops.reshape(targets, (-1,)), outputs.dtype)
        cosines = ops.sum(outputs[:, 0] * outputs[:, 1], axis=-1)
        return ops.square(cosines - targets)

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with `target` and `predicted`.

        They have the scaled score and the cosine of each pair.
        """
        vectors = np.asarray(outputs, "float64")
        return {
            "target": np.asarray(targets, "float64"),
            "predicted": np.sum(vectors[:, 0] * vectors[:, 1], axis=-1),
        }


def _grouped(sequences: list[np.ndarray], size: int) -> list[list[np.ndarray]]:
    """Splits the sequences of all texts into a list of `size` for each row."""
    starts = range(0, len(sequences), size)
    return [sequences[start : start + size] for start in starts]


@keras.saving.register_keras_serializable("tf_adapters")
class TextVectorLayer(Float32Layer):
    """Maps the token vectors of each text to one vector of length 1.

    Args:
        token_pooling: See `TextVectorHead`.
        **kwargs: See `keras.layers.Layer`.

    Call arguments:
        outputs: Dict that `AdaptedEncoder` returns for the sequences of all
            texts, and `padding_mask`, `(batch, texts, tokens)` or
            `(batch, tokens)`.
        seeds: Not used.

    Returns:
        Float32 tensor `(batch, texts, width)`, or `(batch, width)` if the mask
        has shape `(batch, tokens)`.
    """

    kernels_after_dropout = ()
    output_shape = (None, None, None)  # For Keras's `summary`.

    def __init__(self, token_pooling: TokenPooling, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.token_pooling = token_pooling

    def build(self, input_shape: Any) -> None:
        """Does nothing, as there are no weights."""

    def call(
        self, outputs: dict[str, Tensor], seeds: "StatelessSeeds | None" = None
    ) -> Tensor:
        mask = outputs["padding_mask"]
        sequences = ops.reshape(mask, (-1, ops.shape(mask)[-1]))
        vectors = pool_tokens(outputs, sequences, self.token_pooling)
        squares = ops.sum(ops.square(vectors), axis=-1, keepdims=True)
        vectors = vectors * ops.rsqrt(ops.maximum(squares, 1e-12))
        if len(mask.shape) == 2:
            return vectors
        sizes = ops.shape(mask)
        return ops.reshape(vectors, (sizes[0], sizes[1], vectors.shape[-1]))
