"""Multi-label classification: each text has any number of classes."""

from collections.abc import Iterable
import dataclasses
from typing import Any

from keras import ops
import numpy as np
import scipy.special
from sklearn import metrics as sklearn_metrics

from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.heads import explained
from tf_adapters.heads import metrics
from tf_adapters.heads.classification import TextHead
from tf_adapters.heads.explained import Explained
from tf_adapters.heads.labels import check_class_ids
from tf_adapters.heads.labels import check_outputs
from tf_adapters.heads.registry import register
from tf_adapters.heads.vector_head import rounded

_AVERAGES = {"micro_f1": "micro", "macro_f1": "macro"}


@register("multilabel")
@dataclasses.dataclass(frozen=True)
class MultiLabel(TextHead):
    """Predicts any number of classes for each text (multi-label).

    Each class has a logit of its own. The loss is the mean of the classes'
    binary cross-entropies, and a class is predicted if its probability is at
    least `threshold`. With the default threshold, this is the multi-label head
    of the `adapters` library.

    Attributes:
        labels: Names of two or more different classes, in the order of their
            ids.
        threshold: Minimum probability of a predicted class. Defaults to 0.5.

    Examples:
        >>> head = heads.MultiLabel(labels=("drama", "comedy", "crime"))
        >>> head.decode(np.array([[2.0, -1.0, 3.0]]))[0]["labels"]
        ['drama', 'crime']
    """

    labels: tuple[str, ...] = ()
    threshold: float = 0.5

    at_inference = (*TextHead.at_inference, "threshold")

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.threshold < 1:
            raise UserError(
                "`threshold` is a probability between 0 and 1. Received: "
                f"threshold={self.threshold}"
            )

    def targets(self, rows: list[dict[str, Any]]) -> np.ndarray:
        """Returns the classes of rows as an array `(len(rows), classes)`.

        An entry is 1.0 if the row has the class, else 0.0, in float32.

        Raises:
            UserError: If a row's label is not a list of class ids. The list may
                be empty. The message names the row.
        """
        targets = np.zeros((len(rows), len(self.labels)), "float32")
        for place, row in enumerate(rows):
            check_class_ids(place, row["label"], self.labels)
            # An empty array has floats, which are no indices.
            targets[place, list(row["label"])] = 1
        return targets

    def check_labels(
        self, labels: Any, ignored_class: int | None = None
    ) -> None:
        """Raises a `UserError` if a label is above 1, such as a class id.

        Losses can give a meaning to -1, as the hinge loss does.
        """
        wrong = np.argwhere(labels > 1)
        if len(wrong):
            raise UserError(
                "Labels must have a 0 or 1 for each of the "
                f"{len(self.labels)} classes, and are not class ids. "
                f"Received: {shown(labels[tuple(wrong[0])].item())} in row "
                f"{wrong[0][0]} (the first is 0)."
            )

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns each example's mean binary cross-entropy, `(batch,)`."""
        return ops.mean(
            ops.binary_crossentropy(targets, outputs, from_logits=True), axis=-1
        )

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """Returns an array with 1 for each predicted class, else 0.

        Its shape is `(texts, classes)`.
        """
        return (_probabilities(outputs) >= self.threshold).astype(int)

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with `target`, `predicted` and `probabilities`.

        Each is an array `(texts, classes)`.
        """
        return {
            "target": np.asarray(targets, int),
            "predicted": self.predictions(outputs),
            "probabilities": rounded(_probabilities(outputs)),
        }

    @classmethod
    def score(
        cls, names: Iterable[str], compared: dict[str, Any]
    ) -> dict[str, float]:
        """Computes micro and macro F1 over a whole set.

        A class that never occurs and is never predicted has an F1 of 0 in the
        macro mean, as in scikit-learn.
        """
        for name in names:
            check_known("metric", name, _AVERAGES)
        return {
            name: float(
                sklearn_metrics.f1_score(
                    *map(np.asarray, metrics.both(compared)),
                    average=_AVERAGES[name],
                    zero_division=0,
                )
            )
            for name in names
        }

    def decode(
        self, outputs: Tensor, source: Any = None
    ) -> list[dict[str, Any]]:
        """Returns a dict with `labels` and `probabilities` for each text.

        `labels` has the names of the predicted classes.
        """
        check_outputs(outputs, self.labels)
        return [
            {
                "labels": [
                    label
                    for label, p in zip(self.labels, row, strict=True)
                    if p >= self.threshold
                ],
                "probabilities": self.by_label(row),
            }
            for row in _probabilities(outputs)
        ]

    def answer(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns a dict with `probabilities` and `is_predicted` as tensors.

        Both have an entry for each class.
        """
        probabilities = ops.sigmoid(outputs)
        return {
            "probabilities": probabilities,
            "is_predicted": probabilities >= self.threshold,
        }

    def explained(
        self, output: np.ndarray, source: Any, label: str | None = None
    ) -> list[Explained]:
        """Returns the predicted classes, or only the class `label`.

        If no class is predicted, returns the most probable one.
        """
        found = np.flatnonzero(self.predictions(output[None])[0])
        if label is not None or not len(found):
            found = [
                explained.index_of(label, self.labels, int(output.argmax()))
            ]
        return [explained.label_score(self.labels[i], int(i)) for i in found]


def _probabilities(outputs: Tensor) -> np.ndarray:
    return scipy.special.expit(np.asarray(outputs, "float64"))
