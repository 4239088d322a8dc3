"""One number for each text."""

import dataclasses
import math
import numbers

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.suggestions import check_choices
from tf_adapters.data.encoded import encode_texts
from tf_adapters.heads import metrics
from tf_adapters.heads.head import Head
from tf_adapters.heads.head import register
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.linear import LinearHead
from tf_adapters.heads.linear import check_reads
from tf_adapters.heads.linear import hidden_options


@register("regression")
@dataclasses.dataclass(frozen=True)
class Regression(Head):
    """A linear regression on one vector for each text.

    Attributes:
        reads: `"first_token"` (default) or `"pooled_output"`.
        dropout_rate: Dropout before the linear layer. Defaults to 0.1.
        hidden_layer: See `TextHead`.
        hidden_dropout_rate: See `TextHead`.

    Examples:
        >>> head = heads.Regression()
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> tuple(model(features).shape)
        (2, 1)
    """

    reads: str = "first_token"
    dropout_rate: float = 0.1
    hidden_layer: HiddenLayer = "none"
    hidden_dropout_rate: float = 0.0

    signature = "text"

    def __post_init__(self):
        check_reads(self.reads)
        check_choices(self)

    @property
    def is_linear(self):
        """Whether there is no hidden layer."""
        return self.hidden_layer == "none"

    def make_layer(self):
        """Returns the layer from encoder outputs to one number."""
        return LinearHead(
            1,
            self.reads,
            self.dropout_rate,
            **hidden_options(self),
            name="head",
        )

    def encode(self, rows, fields, packer, labelled=True):
        """Returns an example for each row; see `encode_texts`."""
        targets = self.targets(rows) if labelled else None
        return encode_texts(rows, fields, packer, targets)

    def targets(self, rows):
        """Returns the numbers of rows, `(len(rows),)` float32.

        Raises:
            UserError: If a row has no label or one that is no finite number;
                names the row.
        """
        return np.array(
            [_number(i, row["label"]) for i, row in enumerate(rows)], "float32"
        )

    def loss(self, targets, outputs):
        """Returns the squared error of each example, `(batch,)`."""
        return ops.square(outputs[:, 0] - ops.cast(targets, outputs.dtype))

    def predictions(self, outputs):
        """Returns the predicted numbers, as metrics want them."""
        return np.asarray(outputs)[:, 0]

    def compare(self, outputs, targets, source=None):
        """Returns the numbers that are right and those predicted.

        In float64, which is the same after JSON.
        """
        predicted = self.predictions(outputs).astype("float64")
        return {
            "target": np.asarray(targets, "float64"),
            "predicted": predicted,
        }

    @classmethod
    def score(cls, names, compared):
        """Returns metrics over a whole set, see `metrics.compute`."""
        return metrics.compute_metrics(names, *metrics.both(compared))

    @classmethod
    def resample(cls, name, compared):
        """Returns the metric's function, see `metrics.resampled`."""
        known = metrics.resampled(name, compared)
        return known or super().resample(name, compared)

    def decode(self, outputs, source=None):
        """Returns one dict for each row, for people and JSON."""
        return [
            {"score": round(float(score), 6)}
            for score in self.predictions(outputs)
        ]

    def answer(self, outputs):
        """Returns the numbers."""
        return {"score": outputs[:, 0]}


def _number(place, label):
    if not isinstance(label, numbers.Real) or not math.isfinite(label):
        raise UserError(
            f"Row {place} (the first is 0) has the label {label!r}; expected a "
            "finite number. Leave out rows without a label."
        )
    return label
