"""Classification of texts into one class each."""

from collections.abc import Iterable
import dataclasses
import math
import numbers
import sys
import typing
from typing import TYPE_CHECKING
from typing import Any
from typing import Self

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.heads import explained
from tf_adapters.heads.explained import Explained
from tf_adapters.heads.labels import check_class_array
from tf_adapters.heads.labels import check_class_id
from tf_adapters.heads.labels import check_outputs
from tf_adapters.heads.labels import class_names
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.registry import register
from tf_adapters.heads.vector_head import VectorHead
from tf_adapters.heads.vector_head import rounded

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.tasks.task import Task


@dataclasses.dataclass(frozen=True)
class TextHead(VectorHead):
    """Base class of heads that compute a logit of each class for each text.

    The defaults are from Houlsby et al. 2019 (section 3.1). These settings
    reproduce other heads:

    - BERT (Devlin et al. 2019; Hugging Face): `reads="pooled_output"`.
    - AdapterBias's code: `reads="pooled_output"` and `dropout_rate=0.5`.
    - RoBERTa (Hugging Face) and the `adapters` library: `hidden_layer="tanh"`
      and `hidden_dropout_rate=0.1`.
    - DistilBERT (Hugging Face): `hidden_layer="relu"` and `dropout_rate=0.2`.

    Attributes:
        labels: Names of two or more different classes, in the order of their
            ids.
        reads: Vector that the head reads: `"first_token"` (default) or
            `"pooled_output"`.
        dropout_rate: Rate of dropout before the linear layer. Defaults to 0.1
            (Devlin et al. 2019).
        hidden_layer: Activation of a dense layer before the linear layer, which
            is as wide as the encoder, or `"none"` (default) for no such layer.
        hidden_dropout_rate: Rate of dropout before the dense layer. Defaults
            to 0.
        windows: See `VectorHead`, also for `window_stride` and `pooling`.

    Examples:
        >>> roberta_like = heads.Classification(
        ...     ("no", "yes"), hidden_layer="tanh", hidden_dropout_rate=0.1
        ... )
        >>> roberta_like.is_linear
        False
    """

    labels: tuple[str, ...] = ()
    reads: str = "first_token"
    dropout_rate: float = 0.1
    hidden_layer: HiddenLayer = "none"
    hidden_dropout_rate: float = 0.0

    gives_logits = True

    def __post_init__(self) -> None:
        names = class_names(self.labels, type(self).__name__)
        object.__setattr__(self, "labels", names)
        super().__post_init__()

    @classmethod
    def for_task(
        cls, task: "Task", encoder: "Encoder | None" = None, **settings: Any
    ) -> Self:
        """Creates the head with a task's classes."""
        return cls(labels=task.labels, **settings)

    def by_label(self, probabilities: Iterable[float]) -> dict[str, float]:
        """Returns a dict from class name to probability, rounded for JSON."""
        return {
            label: round(float(probability), 6)
            for label, probability in zip(
                self.labels, probabilities, strict=True
            )
        }


@register("classification")
@dataclasses.dataclass(frozen=True)
class Classification(TextHead):
    """Predicts one class for each text, with a linear layer by default.

    See `TextHead` for the other settings.

    Attributes:
        class_weights: Factors by which the losses of a class's examples are
            multiplied: `()` (default) for no factors, a number for each class,
            or `("balanced",)`. The latter sets the factor of class `c` to
            `n / (k n_c)`, as in scikit-learn, where `n_c` of the `n` training
            rows belong to class `c`, and `k` is the number of classes. Outside
            of runs, `for_rows` sets these factors.
        temperature: Number by which logits are divided before the softmax that
            gives probabilities. Defaults to 1; `train.calibrate` fits it.
        label_smoothing: Share of each target that is spread evenly over all
            classes, including the right one (Szegedy et al. 2016, section 7).
            A number in `[0, 1)`; defaults to 0. As in Keras, a class weight
            multiplies the smoothed loss.

    Examples:
        >>> head = heads.Classification(("no", "yes"), class_weights=(1.0, 5.0))
        >>> head.decode(np.array([[0.0, 2.0]]))[0]["label"]
        'yes'
    """

    class_weights: typing.Any = ()
    temperature: float = 1.0
    label_smoothing: float = 0.0

    at_inference = (*TextHead.at_inference, "temperature")

    def __post_init__(self) -> None:
        super().__post_init__()
        share = self.label_smoothing
        if not (isinstance(share, numbers.Real) and 0 <= share < 1):
            raise UserError(
                "`label_smoothing` is a number from 0 to below 1: the share "
                "of each target that is spread evenly over all classes. "
                f"Received: {cut(share)}"
            )
        weights = self.class_weights
        is_single = isinstance(weights, str | numbers.Number | None)
        weights = (weights,) if is_single else tuple(weights)
        # NumPy's numbers cannot be written as JSON.
        weights = tuple(
            w.item() if isinstance(w, np.generic) else w for w in weights
        )
        object.__setattr__(self, "class_weights", weights)
        if weights not in ((), ("balanced",)):
            self._check_weights()
        if not 0 < self.temperature < math.inf:
            raise UserError(
                "`temperature` is a number above 0. Received: "
                f"temperature={shown(self.temperature)}"
            )

    @property
    def has_temperature(self) -> bool:
        """Whether the outputs are logits, which a temperature can divide.

        `False` if a subclass overrides `predictions`, since its outputs may
        then be something else.
        """
        return type(self).predictions is Classification.predictions

    def _check_weights(self) -> None:
        weights: Any = self.class_weights
        are_positive = all(
            isinstance(w, numbers.Real) for w in weights
        ) and all(0 < w <= sys.float_info.max for w in weights)
        if len(weights) != len(self.labels) or not are_positive:
            raise UserError(
                "`class_weights` is `balanced`, or a positive number for each "
                f"of {cut(', '.join(self.labels))}. Received: {cut(weights)}"
            )

    def for_rows(self, rows: list[dict[str, Any]]) -> Self:
        """Returns a copy with class weights computed from training rows.

        This happens only if the weights are `"balanced"`. Otherwise, the head
        itself is returned.

        Raises:
            UserError: If the weights are balanced and a class has no rows.
        """
        if self.class_weights != ("balanced",):
            return self
        counts = np.bincount(self.targets(rows), minlength=len(self.labels))
        if not counts.all():
            missing = [self.labels[i] for i in np.flatnonzero(counts == 0)]
            raise UserError(
                "`class_weights=balanced` needs training rows of each class. "
                f"There are none of {cut(', '.join(missing))}."
            )
        weights = len(rows) / (len(counts) * counts)
        return dataclasses.replace(self, class_weights=tuple(weights.tolist()))

    def targets(self, rows: list[dict[str, Any]]) -> np.ndarray:
        """Returns the class ids of rows, `(len(rows),)` int32.

        Raises:
            UserError: If a row's label is not a class id. The message names
                the row.
        """
        for place, row in enumerate(rows):
            check_class_id(place, row["label"], self.labels)
        return np.array([row["label"] for row in rows], "int32")

    def check_labels(
        self, labels: Any, ignored_class: int | None = None
    ) -> None:
        """Raises a `UserError` if a label is not a class id.

        `ignored_class` is also allowed. Labels of shape `(texts, classes)` are
        not ids and are not checked.
        """
        if labels.ndim > 2 or (labels.ndim == 2 and labels.shape[1] != 1):
            return
        check_class_array(labels, self.labels, (ignored_class,))

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the weighted cross-entropy of each example, `(batch,)`."""
        losses = ops.sparse_categorical_crossentropy(
            targets, outputs, from_logits=True
        )
        if self.label_smoothing:
            # The cross-entropy with the uniform distribution.
            even = -ops.mean(ops.log_softmax(outputs), axis=-1)
            losses += self.label_smoothing * (even - losses)
        if not self.class_weights:
            return losses
        if self.class_weights == ("balanced",):
            raise UserError(
                "`class_weights=balanced` needs the training rows, which the "
                "loss does not see. Outside of `tf-adapters train`, use the "
                "head that `head.for_rows(rows)` returns (a row's `label` is a "
                "class id), or give a number for each class."
            )
        weights = ops.convert_to_tensor(self.class_weights, losses.dtype)
        # With `compile(loss=head.loss)`, targets can have shape `(batch, 1)`.
        ids = ops.cast(ops.reshape(targets, (-1,)), "int32")
        return losses * ops.take(weights, ids)

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """Returns the id of the most probable class for each row of logits."""
        return np.argmax(outputs, axis=-1)

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with `target`, `predicted` and `probabilities`.

        The first two have a class id for each text. `probabilities` has an
        array with the probability of each class for each text. It is missing
        if `has_temperature` is `False`.
        """
        compared = super().compare(outputs, targets)
        if self.has_temperature:
            compared["probabilities"] = rounded(self._probabilities(outputs))
        return compared

    def _probabilities(self, outputs: Tensor) -> np.ndarray:
        logits = np.asarray(outputs, "float64") / self.temperature
        return scipy.special.softmax(logits, axis=-1)

    def decode(
        self, outputs: Tensor, source: Any = None
    ) -> list[dict[str, Any]]:
        """Returns a dict with `label` and `probabilities` for each text.

        `label` is the name of the most probable class.
        """
        check_outputs(outputs, self.labels)
        return [
            {
                "label": self.labels[int(np.argmax(row))],
                "probabilities": self.by_label(row),
            }
            for row in self._probabilities(outputs)
        ]

    def answer(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns a dict with `label_id` and `probabilities` as tensors.

        `label_id` is the id of the most probable class.
        """
        return {
            "label_id": ops.cast(ops.argmax(outputs, axis=-1), "int32"),
            "probabilities": ops.softmax(outputs / self.temperature),
        }

    def explained(
        self, output: np.ndarray, source: Any, label: str | None = None
    ) -> list[Explained]:
        """Returns the predicted class, or the class `label`."""
        (default,) = self.predictions(output[None])
        index = explained.index_of(label, self.labels, default)
        return [explained.class_score(self.labels, index, self.temperature)]
