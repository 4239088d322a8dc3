"""Regression of one number for each text."""

import dataclasses
import math
import numbers
import typing
from typing import Any
from typing import Self

from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.common.types import Tensor
from tf_adapters.heads import explained
from tf_adapters.heads.explained import Explained
from tf_adapters.heads.labels import check_number
from tf_adapters.heads.labels import check_outputs
from tf_adapters.heads.linear import HiddenLayer
from tf_adapters.heads.registry import register
from tf_adapters.heads.vector_head import VectorHead
from tf_adapters.heads.windows import WindowsLayer

# The value of `initial_bias` that stands for the mean of the training labels.
MEAN = "mean"


@register("regression")
@dataclasses.dataclass(frozen=True)
class Regression(VectorHead):
    """Predicts one number for each text, with a linear layer by default.

    Attributes:
        reads: Vector that the head reads: `"first_token"` (default) or
            `"pooled_output"`.
        dropout_rate: Rate of dropout before the linear layer. Defaults to 0.1.
        hidden_layer: See `TextHead`.
        hidden_dropout_rate: See `TextHead`.
        initial_bias: Number that the head predicts for any text before it is
            trained, apart from the small part of its random kernel: 0
            (default), another number, or `"mean"` for the mean of the training
            labels. With labels far from 0, the adapters otherwise first learn
            to make all texts alike.
        windows: See `VectorHead`, also for `window_stride` and `pooling`.

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
    initial_bias: typing.Any = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        bias: Any = self.initial_bias
        is_number = isinstance(bias, numbers.Real) and math.isfinite(bias)
        if bias != MEAN and not is_number:
            raise UserError(
                f'`initial_bias` must be a number or "{MEAN}". Received: '
                f"initial_bias={shown(bias)}"
            )

    def for_rows(self, rows: list[dict[str, Any]]) -> Self:
        """Returns a copy whose `initial_bias` is a number.

        This happens only if it is `"mean"`. Otherwise, the head itself is
        returned.
        """
        if self.initial_bias != MEAN:
            return self
        mean = float(self.targets(rows).mean(dtype="float64"))
        return dataclasses.replace(self, initial_bias=mean)

    def make_layer(self) -> WindowsLayer:
        """Creates the layer that maps encoder outputs to a number."""
        layer = super().make_layer()
        if self.initial_bias != MEAN:
            layer.initial_bias = float(self.initial_bias)
        return layer

    def targets(self, rows: list[dict[str, Any]]) -> np.ndarray:
        """Returns the labels of rows, `(len(rows),)` float32.

        Raises:
            UserError: If a row's label is not a finite number. The message
                names the row.
        """
        for place, row in enumerate(rows):
            check_number(place, row["label"])
        return np.array([row["label"] for row in rows], "float32")

    def loss(self, targets: Tensor, outputs: Tensor) -> Tensor:
        """Returns the squared error of each example, `(batch,)`."""
        # With `compile(loss=head.loss)`, targets have shape `(batch, 1)`.
        targets = ops.cast(ops.reshape(targets, (-1,)), outputs.dtype)
        return ops.square(outputs[:, 0] - targets)

    def predictions(self, outputs: Tensor) -> np.ndarray:
        """Returns the predicted numbers, `(batch,)`."""
        return np.asarray(outputs)[:, 0]

    def compare(
        self, outputs: Tensor, targets: Tensor, source: Any = None
    ) -> dict[str, Any]:
        """Returns a dict with `target` and `predicted`, arrays of numbers.

        The numbers are converted to float64, so that writing them to JSON and
        reading them back does not change them.
        """
        predicted = self.predictions(outputs).astype("float64")
        return {
            "target": np.asarray(targets, "float64"),
            "predicted": predicted,
        }

    def decode(
        self, outputs: Tensor, source: Any = None
    ) -> list[dict[str, Any]]:
        """Returns a list with a dict for each row: its predicted `score`."""
        check_outputs(outputs, ("score",))
        return [
            {"score": round(float(score), 6)}
            for score in self.predictions(outputs)
        ]

    def answer(self, outputs: Tensor) -> dict[str, Tensor]:
        """Returns a dict with the predicted numbers as `score`, `(batch,)`."""
        return {"score": outputs[:, 0]}

    def explained(
        self, output: np.ndarray, source: Any, label: str | None = None
    ) -> list[Explained]:
        """Returns the predicted number; `label` must be `None`."""
        explained.check_no_label(label)
        return [Explained("score", "number", lambda outputs: outputs[:, 0])]
