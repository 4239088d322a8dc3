"""Tagging: classification of each word of a sentence."""

from collections.abc import Callable
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import dataclasses
import itertools
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples
from tf_adapters.heads import explained
from tf_adapters.heads import metrics
from tf_adapters.heads.explained import Explained
from tf_adapters.heads.head import Head
from tf_adapters.heads.labels import check_class_array
from tf_adapters.heads.labels import check_class_ids
from tf_adapters.heads.labels import class_names
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.linear import bank_parts
from tf_adapters.heads.linear import hidden_options
from tf_adapters.heads.registry import register
from tf_adapters.heads.tagging_windows import WindowSource
from tf_adapters.heads.tagging_windows import make_window_source
from tf_adapters.heads.tokens import TokenLayer
from tf_adapters.heads.vector_head import rounded
from tf_adapters.layers.banks.bank_layer import Part

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.tasks.task import Task


@register("tagging")
@dataclasses.dataclass(frozen=True)
class Tagging(Head):
    """Predicts a class for each word from the word's first token.

    The other tokens of a word have no target (Devlin et al. 2019, section 5.3).
    If a sentence does not fit into the input, it is split between words into
    several windows, so every word has a prediction.

    Attributes:
        labels: Names of two or more different classes, in the order of their
            ids.
        dropout_rate: Rate of dropout before the linear layer. Defaults to 0.1.
        hidden_layer: See `TextHead`.
        hidden_dropout_rate: See `TextHead`.

    Examples:
        >>> tags = heads.Tagging(labels=("NOUN", "VERB", "OTHER"))
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), tags)
        >>> model(features).shape[-1]  # For each token.
        3
    """

    labels: tuple[str, ...] = ()
    dropout_rate: float = 0.1
    hidden_layer: HiddenLayer = "none"
    hidden_dropout_rate: float = 0.0

    signature = "words"
    gives_logits = True

    @classmethod
    def for_task(
        cls, task: "Task", encoder: "Encoder | None" = None, **settings: Any
    ) -> Self:
        """Creates the head with a task's classes."""
        return cls(labels=task.labels, **settings)

    def __post_init__(self) -> None:
        names = class_names(self.labels, type(self).__name__)
        object.__setattr__(self, "labels", names)
        super().__post_init__()

    def make_layer(self) -> TokenLayer:
        """Creates the layer that maps each token to logits."""
        return TokenLayer(
            len(self.labels),
            self.dropout_rate,
            **hidden_options(self),
            name="head",
        )

    def bank_parts(self, layer: Any) -> list[Part]:
        """Returns the weights of `layer` in the form that a bank stores."""
        return bank_parts(layer, self.reads)

    def encode(
        self,
        rows: list[dict[str, Any]],
        fields: Sequence[str],
        packer: Any,
        labeled: bool = True,
    ) -> Examples:
        """Converts each window of each sentence to an example.

        Args:
            rows: List of dicts.
            fields: Tuple with the key of the list of words.
            packer: `TextPacker`.
            labeled: Whether rows have labels. A label is a list with a class
                id or `IGNORED` for each word.

        Raises:
            UserError: If a row's label is not such a list. The message names
                the row.
        """
        (field,) = fields
        for place, row in enumerate(rows if labeled else ()):
            check_class_ids(place, row["label"], self.labels, (IGNORED,))
            if len(row["label"]) != len(row[field]):
                raise UserError(
                    f"Row {place} (the first is 0) has {len(row[field])} words "
                    f"and {len(row['label'])} labels. Expected a label for "
                    "each word."
                )
        source = make_window_source(rows, field, packer)
        ids = [window.token_ids for window in source.windows]
        targets = counts = None
        if labeled:
            targets = [
                window.targets(rows[window.row]["label"])
                for window in source.windows
            ]
            counts = np.array([np.sum(row != IGNORED) for row in targets])
        has_segments = packer.special_tokens.has_segments
        return Examples(
            ids,
            [0 * row for row in ids] if has_segments else None,
            targets,
            counts,
            source,
            pad_id=packer.special_tokens.pad,
        )

    def check_labels(
        self, labels: Any, ignored_class: int | None = None
    ) -> None:
        """Raises a `UserError` if a label is not a class id.

        `IGNORED` and `ignored_class` are also allowed. Labels of shape
        `(texts, tokens, classes)` are not ids and are not checked.
        """
        if labels.ndim < 3 or labels.shape[2:] == (1,):
            allowed = IGNORED, ignored_class
            check_class_array(labels, self.labels, allowed)

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the cross-entropy of each example, `(batch,)`.

        It is summed over the example's words.
        """
        has_target = targets != IGNORED
        losses = ops.sparse_categorical_crossentropy(
            ops.where(has_target, targets, 0), outputs, from_logits=True
        )
        return ops.sum(ops.where(has_target, losses, 0.0), axis=-1)

    def predictions(
        self, outputs: Tensor, source: WindowSource
    ) -> list[list[int]]:
        """Returns, for each row, a list with the class id of each word."""
        return self._of_words(
            lambda logits: np.argmax(logits, axis=-1), outputs, source
        )

    def _of_words(
        self,
        function: Callable[[np.ndarray], np.ndarray],
        outputs: Tensor,
        source: WindowSource,
    ) -> list[list[Any]]:
        """Applies a function to the logits of words.

        The function maps an array `(words, classes)` to an array with a value
        for each word. It is called for each window of a row. Returns a list for
        each row, with the values of its words.
        """
        values = [[] for _ in source.rows]
        for output, window in zip(outputs, source.windows, strict=True):
            logits = np.asarray(output)[window.firsts]
            values[window.row] += function(logits).tolist()
        return values

    def compare(
        self, outputs: Tensor, targets: Tensor, source: WindowSource
    ) -> dict[str, Any]:
        """Returns a dict with `target`, `predicted` and `probabilities`.

        `target` and `predicted` have the class names of each row's words. In
        `target`, words without a label have `None`. `probabilities` has the
        probability of each predicted class.
        """
        return {
            "probabilities": self._of_words(_largest, outputs, source),
            "target": [
                [None if i == IGNORED else self.labels[i] for i in row["label"]]
                for row in source.rows
            ],
            "predicted": [
                [self.labels[i] for i in ids]
                for ids in self.predictions(outputs, source)
            ],
        }

    @classmethod
    def score(
        cls, names: Iterable[str], compared: dict[str, Any]
    ) -> dict[str, float]:
        """Computes metrics over the words that have a label.

        A word without a label ends an entity. See `metrics.compute_tagging`.
        """
        parts = [part for row in labeled_parts(compared) for part in row]
        gold, predicted = ([part[side] for part in parts] for side in (0, 1))
        return metrics.compute_tagging(names, gold, predicted)

    def decode(
        self, outputs: Tensor, source: WindowSource
    ) -> list[dict[str, Any]]:
        """Returns a list with a dict for each row.

        Its `tags` are the predicted class names of the row's words.
        """
        return [
            {"tags": [self.labels[i] for i in ids]}
            for ids in self.predictions(outputs, source)
        ]

    def explained(
        self, output: np.ndarray, source: WindowSource, label: str | None = None
    ) -> list[Explained]:
        """Returns the tag of each word, or of the class `label` for all."""
        (window,) = source.windows
        found = []
        for token in window.firsts.tolist():
            default = int(output[token].argmax())
            index = explained.index_of(label, self.labels, default)
            answer = explained.class_score(self.labels, index, tokens=(token,))
            found.append(answer)
        return found


def _largest(logits: np.ndarray) -> np.ndarray:
    """Returns the probability of each word's most probable class."""
    probabilities = scipy.special.softmax(logits.astype("float64"), axis=-1)
    return rounded(probabilities.max(axis=-1))


def labeled_parts(
    compared: dict[str, Any],
) -> list[list[tuple[list[str], list[str]]]]:
    """Splits each row at the words without a label, which are left out.

    Args:
        compared: Dict that `Tagging.compare` returned.

    Returns:
        List with a list of parts for each row. A part consists of successive
        labeled words. It is a pair of lists: the right class names of the words
        and the predicted ones.
    """
    rows = zip(*metrics.both(compared), strict=True)
    return [list(_parts(*row)) for row in rows]


def _parts(
    labels: list[str | None], tags: list[str]
) -> Iterator[tuple[list[str], list[str]]]:
    pairs = zip(labels, tags, strict=True)
    for has_label, kept in itertools.groupby(
        pairs, lambda pair: pair[0] is not None
    ):
        if has_label:
            right, found = zip(*kept, strict=True)
            yield list(right), list(found)
