"""A Keras model that delegates to an exchangeable `AdapterModel`."""

from typing import Any

import keras

from tf_adapters.common.types import Tensor
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.variable_groups import trained_table
from tf_adapters.text.adapter_set import AdapterSet


def _of_adapter_model(name: str) -> Any:
    """Returns a property that reads an attribute of `adapter_model`."""
    return property(lambda model: getattr(model.adapter_model, name))


class StandInModel(keras.Model):
    """A Keras model that delegates to its `adapter_model`.

    Attributes:
        adapters: `AdapterSet` of all adapters.
    """

    adapters: AdapterSet

    @property
    def adapter_model(self) -> AdapterModel:
        """The `AdapterModel` of the active adapter."""
        raise NotImplementedError

    @property
    def text_fields(self) -> tuple[str, ...] | None:
        """Names of the active adapter's text fields.

        `None` before the first call, unless a stored adapter names them.
        """
        return self.adapters.text_fields.get(self.adapters.active)

    @text_fields.setter
    def text_fields(self, fields: tuple[str, ...] | None) -> None:
        self.adapters.text_fields[self.adapters.active] = fields

    head = _of_adapter_model("head")
    method = _of_adapter_model("method")
    variables = _of_adapter_model("variables")
    trainable_variables = _of_adapter_model("trainable_variables")
    non_trainable_variables = _of_adapter_model("non_trainable_variables")
    weights = _of_adapter_model("weights")
    trainable_weights = _of_adapter_model("trainable_weights")
    non_trainable_weights = _of_adapter_model("non_trainable_weights")

    @property
    def optimizer(self) -> keras.optimizers.Optimizer:
        """The optimizer of the active adapter."""
        return self.adapter_model.optimizer

    @optimizer.setter
    def optimizer(self, value: keras.optimizers.Optimizer | None) -> None:
        # Keras's constructor sets `None` before there is an adapter.
        if value is not None:
            self.adapter_model.optimizer = value

    @property
    def trainable(self) -> bool:
        """Whether the active adapter trains; see `AdapterModel.trainable`."""
        # Keras's constructor reads and sets it before there is an adapter.
        has_adapter = "adapters" in vars(self)
        return self.adapter_model.trainable if has_adapter else self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        if "adapters" in vars(self):
            self.adapter_model.trainable = value

    def train_on_batch(self, x: Any, *args: Any, **options: Any) -> Any:
        """Trains one step on token features; see `keras.Model`."""
        return self.adapter_model.train_on_batch(x, *args, **options)

    def test_on_batch(self, x: Any, *args: Any, **options: Any) -> Any:
        """Evaluates one batch of token features; see `keras.Model`."""
        return self.adapter_model.test_on_batch(x, *args, **options)

    def predict_on_batch(self, x: Any) -> Any:
        """Returns the outputs of one batch of token features."""
        return self.adapter_model.predict_on_batch(x)

    def call(
        self, inputs: dict[str, Tensor], training: bool | None = None
    ) -> Tensor:
        return self.adapter_model(inputs, training=training)

    def summary(self, **options: Any) -> None:
        """Prints Keras's summary, and the table of trained weights."""
        self.adapter_model.summary(**options)
        print_fn = options.get("print_fn") or print
        print_fn(trained_table(self.adapter_model))

    def get_compile_config(self) -> dict[str, Any] | None:
        config: Any = self.adapter_model.get_compile_config()
        return config

    def compile_from_config(self, config: dict[str, Any]) -> None:
        self.adapter_model.compile_from_config(config)
