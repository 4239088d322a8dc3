"""One number for each text."""

import dataclasses
import math
import numbers

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.heads.head import register
from tf_adapters.heads.labels import check_outputs
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.vector_head import VectorHead


@register("regression")
@dataclasses.dataclass(frozen=True)
class Regression(VectorHead):
    """A linear regression on one vector for each text.

    Attributes:
        reads: `"first_token"` (default) or `"pooled_output"`.
        dropout_rate: Dropout before the linear layer. Defaults to 0.1.
        hidden_layer: See `TextHead`.
        hidden_dropout_rate: See `TextHead`.
        windows: See `VectorHead`, which has `window_stride` and `pooling`, too.

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
        # In `compile(loss=head.loss)` Keras makes the targets `(batch, 1)`.
        targets = ops.cast(ops.reshape(targets, (-1,)), outputs.dtype)
        return ops.square(outputs[:, 0] - targets)

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

    def decode(self, outputs, source=None):
        """Returns one dict for each row, for people and JSON."""
        check_outputs(outputs, ("score",))
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
            f"Row {place} (the first is 0) has the label {shown(label)}; "
            "expected a finite number. Leave out rows without a label."
        )
    return label
