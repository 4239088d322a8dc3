"""One class for each text."""

import dataclasses
import math
import numbers
import typing

from keras import ops
import numpy as np
import scipy.special

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.heads.head import register
from tf_adapters.heads.labels import check_class_id
from tf_adapters.heads.labels import check_outputs
from tf_adapters.heads.labels import class_names
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.vector_head import VectorHead
from tf_adapters.heads.vector_head import rounded


@dataclasses.dataclass(frozen=True)
class TextHead(VectorHead):
    """Settings that heads of classes on one vector for each text share.

    The defaults are Houlsby's (section 3.1). Devlin's, as Hugging Face's for
    BERT, has `reads="pooled_output"`; that in the code of AdapterBias beside it
    `dropout_rate=0.5`. Hugging Face's for RoBERTa, and the head of the
    `adapters` library, has `hidden_layer="tanh"` with
    `hidden_dropout_rate=0.1`; that for DistilBERT `hidden_layer="relu"` with
    `dropout_rate=0.2`.

    Attributes:
        labels: Class names in the order of their ids; at least two, each
            named once.
        reads: `"first_token"` (default) or `"pooled_output"`.
        dropout_rate: Dropout before the linear layer. Defaults to 0.1 (Devlin
            et al. 2019).
        hidden_layer: `"none"` (default), or the activation of a dense layer, as
            wide as the encoder, before the linear one.
        hidden_dropout_rate: Dropout before that layer. Defaults to 0.
        windows: See `VectorHead`, which has `window_stride` and `pooling`, too.

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

    def __post_init__(self):
        names = class_names(self.labels, type(self).__name__)
        object.__setattr__(self, "labels", names)
        super().__post_init__()

    @classmethod
    def for_task(cls, task, encoder=None, **settings):
        """Returns the head with a task's classes."""
        return cls(labels=task.labels, **settings)


@register("classification")
@dataclasses.dataclass(frozen=True)
class Classification(TextHead):
    """A classifier on one vector for each text, linear by default.

    See `TextHead` for the other settings.

    Attributes:
        class_weights: What the losses of each class's examples are multiplied
            by: nothing (default); a number for each class; or `("balanced",)`,
            `n / (k n_c)` with `n_c` of the `n` training rows in class `c` of
            `k`, as scikit-learn has it.
        temperature: What logits are divided by before they become
            probabilities. Defaults to 1; `train.calibrate` fits it.
        label_smoothing: Share of each target that is spread evenly over all
            classes, the right one included, from 0 (default) to below 1
            (Szegedy et al. 2016, section 7). An example's class weight
            multiplies the whole of its loss, as in Keras.

    Examples:
        >>> head = heads.Classification(("no", "yes"), class_weights=(1.0, 5.0))
        >>> head.decode(np.array([[0.0, 2.0]]))[0]["label"]
        'yes'
    """

    class_weights: typing.Any = ()
    temperature: float = 1.0
    label_smoothing: float = 0.0

    at_inference = (*TextHead.at_inference, "temperature")

    def __post_init__(self):
        super().__post_init__()
        share = self.label_smoothing
        if not (isinstance(share, numbers.Real) and 0 <= share < 1):
            raise UserError(
                "`label_smoothing` is a number from 0 to below 1, the share of "
                f"a target that all classes get alike. Received: {cut(share)}"
            )
        weights = self.class_weights
        weights = (weights,) if isinstance(weights, str) else tuple(weights)
        object.__setattr__(self, "class_weights", weights)
        if weights not in ((), ("balanced",)):
            self._check_weights()
        if not 0 < self.temperature < math.inf:
            raise UserError(
                "`temperature` is a number above 0. Received: "
                f"temperature={shown(self.temperature)}"
            )

    @property
    def has_temperature(self):
        """Whether outputs are logits of the classes.

        Those of a head that predicts in its own way need not be.
        """
        return type(self).predictions is Classification.predictions

    def _check_weights(self):
        weights = self.class_weights
        are_numbers = all(
            isinstance(w, numbers.Real) and 0 < w < math.inf for w in weights
        )
        if len(weights) != len(self.labels) or not are_numbers:
            raise UserError(
                "`class_weights` is `balanced`, or a positive number for each "
                f"of {cut(', '.join(self.labels))}. Received: {cut(weights)}"
            )

    def for_rows(self, rows):
        """Returns the head with the weights that balance these rows."""
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

    def targets(self, rows):
        """Returns the class ids of rows, `(len(rows),)` int32.

        Raises:
            UserError: If a row has no label or one that is no class id; names
                the row.
        """
        for place, row in enumerate(rows):
            check_class_id(place, row["label"], self.labels)
        return np.array([row["label"] for row in rows], "int32")

    def check_labels(self, labels, ignored_class=None):
        """Raises a `UserError` if ids are not those of its classes.

        A row of numbers for each text, one a class, is no id.
        """
        if labels.ndim > 2 or (labels.ndim == 2 and labels.shape[1] != 1):
            return
        labels = labels.reshape(-1)
        is_id = (labels % 1 == 0) & (0 <= labels) & (labels < len(self.labels))
        wrong = np.flatnonzero(~is_id & (labels != ignored_class))
        if len(wrong):
            check_class_id(wrong[0], labels[wrong[0]].item(), self.labels)

    def loss(self, targets, outputs):
        """Returns the weighted cross-entropy of each example, `(batch,)`."""
        losses = ops.sparse_categorical_crossentropy(
            targets, outputs, from_logits=True
        )
        if self.label_smoothing:
            # That of the even distribution: the mean over the classes.
            even = -ops.mean(ops.log_softmax(outputs), axis=-1)
            losses += self.label_smoothing * (even - losses)
        if not self.class_weights:
            return losses
        weights = ops.convert_to_tensor(self.class_weights, losses.dtype)
        return losses * ops.take(weights, ops.cast(targets, "int32"))

    def predictions(self, outputs):
        """Returns the most probable class ids of logits, as metrics want."""
        return np.argmax(outputs, axis=-1)

    def compare(self, outputs, targets, source=None):
        """Returns what `ValueHead` does, and each row's probabilities."""
        compared = super().compare(outputs, targets)
        if self.has_temperature:
            compared["probabilities"] = rounded(self._probabilities(outputs))
        return compared

    def _probabilities(self, outputs):
        logits = np.asarray(outputs, "float64") / self.temperature
        return scipy.special.softmax(logits, axis=-1)

    def decode(self, outputs, source=None):
        """Returns one dict for each row of logits, for people and JSON."""
        check_outputs(outputs, self.labels)
        return [
            {
                "label": self.labels[int(np.argmax(row))],
                "probabilities": {
                    label: round(float(p), 6)
                    for label, p in zip(self.labels, row, strict=True)
                },
            }
            for row in self._probabilities(outputs)
        ]

    def answer(self, outputs):
        """Returns the likeliest class's id, and all probabilities."""
        return {
            "label_id": ops.cast(ops.argmax(outputs, axis=-1), "int32"),
            "probabilities": ops.softmax(outputs / self.temperature),
        }
