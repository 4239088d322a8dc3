"""A head's loss and metrics as Keras objects."""

import keras

from tf_adapters import heads


@keras.saving.register_keras_serializable("tf_adapters")
class HeadLoss(keras.losses.Loss):
    """The loss of a head, for `compile`.

    Args:
        head: `Head`.
        name: Name of the loss. Default: `"loss"`.
        **kwargs: See `keras.losses.Loss`.
    """

    def __init__(self, head, name="loss", **kwargs):
        super().__init__(name=name, **kwargs)
        self.head = head

    def call(self, y_true, y_pred):
        return self.head.loss(y_true, y_pred)

    def get_config(self):
        return {**super().get_config(), "head": heads.to_config(self.head)}

    @classmethod
    def from_config(cls, config):
        return cls(**{**config, "head": heads.from_config(config["head"])})


def training_metrics(head):
    """Returns the Keras metrics that the progress bar shows for a head.

    The head's own metrics need the whole data set; see `TextModel.evaluate`.
    """
    if heads.name_of(head) in ("classification", "choice"):
        return [keras.metrics.SparseCategoricalAccuracy(name="accuracy")]
    return []
