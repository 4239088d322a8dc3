"""A head's loss and metrics as Keras objects."""

import typing
from typing import Any

import keras

from tf_adapters import heads
from tf_adapters.common.types import Tensor


@keras.saving.register_keras_serializable("tf_adapters")
class HeadLoss(keras.losses.Loss):
    """A head's loss as a Keras loss, which `compile` takes.

    Args:
        head: `Head`.
        name: Name of the loss. Default: `"loss"`.
        **kwargs: See `keras.losses.Loss`.
    """

    def __init__(
        self, head: heads.Head, name: str = "loss", **kwargs: Any
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.head = head

    def call(self, y_true: Tensor, y_pred: Tensor) -> Tensor:
        return self.head.loss(y_true, y_pred)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "head": heads.to_config(self.head)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> typing.Self:
        return cls(**{**config, "head": heads.from_config(config["head"])})


def training_metrics(head: heads.Head) -> list[keras.metrics.Metric]:
    """Returns the Keras metrics to show for a head during training.

    The head's own metrics are not among them, because they need the whole data
    set; see `TextModel.evaluate`.
    """
    if heads.name_of(head) in ("classification", "choice"):
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
    return []
