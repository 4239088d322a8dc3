"""A Keras model of an encoder whose layers are shared with other models."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Collection
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
from keras.src.backend.common.stateless_scope import in_stateless_scope

from tf_adapters.common.types import Tensor
from tf_adapters.encoders.loaded_weights import User
from tf_adapters.models import loss_checks
from tf_adapters.models import loss_scaling
from tf_adapters.models.features_model import FeaturesModel

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder


class EncoderModel(FeaturesModel):
    """A model that detects if another model has changed its `Encoder`.

    Models share an encoder's layers. Once one of them has trained weights of
    the encoder, the others would compute with wrong weights. They therefore
    raise an error if they are called, in `fit`, `evaluate` and `predict`, and
    on saving. If the encoder computes in float16, `fit` scales the loss.

    Args:
        encoder: `Encoder` with the weights that it was loaded with.
        **kwargs: See `keras.Model`.

    Raises:
        UserError: If another model has changed the encoder.
    """

    def __init__(self, encoder: Encoder, **kwargs: Any) -> None:
        super().__init__(autocast=False, **{"dtype": "float32", **kwargs})
        encoder.loaded.check_unchanged(encoder.name)
        # Compute the hash now, before any training changes the encoder.
        encoder.fingerprint  # noqa: B018
        self.encoder_info = encoder
        self.encoder_user = User(self.name, trains_encoder=False)

    def __call__(self, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        self.check_call()
        return super().__call__(inputs, *args, **kwargs)

    def check_not_folded(self) -> None:
        """Raises a `UserError` if the model is folded, as some models can be.

        See `AdapterModel.fold`.
        """

    def check_call(self) -> None:
        """Raises a `UserError` if another model holds the encoder.

        Within a graph, nothing is checked.
        """
        if not _is_traced():
            self.encoder_info.loaded.check_call(
                self.encoder_user, self.encoder_info.name
            )

    def may_change(self, variables: Collection[keras.Variable]) -> None:
        """Declares which variables of the encoder this model may change."""
        self.encoder_user.trains_encoder = bool(variables)
        self.encoder_info.loaded.keep(variables, self.encoder_user)

    def check_encoder(self) -> None:
        """Raises a `UserError` if another model has changed the encoder."""
        self.encoder_info.loaded.check(
            self.encoder_user, self.encoder_info.name
        )

    def hold_encoder(self) -> None:
        """Declares that this model is about to change the encoder.

        Has no effect if the model does not train the encoder.

        Raises:
            UserError: If another model has changed the encoder.
        """
        self.check_encoder()
        if self.encoder_user.trains_encoder:
            self.encoder_info.loaded.hold(self.encoder_user)

    def _hold_while_tracing(self) -> None:
        """Calls `hold_encoder` for a training loop that does not.

        Has no effect within a JAX program, in which weights have no values.
        """
        # A call outside of a graph has been checked, unless the model itself
        # changes the encoder. Comparing all weights takes long.
        is_checked = not self.encoder_user.trains_encoder and not _is_traced()
        if in_stateless_scope() or is_checked:
            return
        if keras.backend.backend() != "tensorflow":
            self.hold_encoder()
            return
        # Imported here, because models also work without TensorFlow.
        import tensorflow as tf

        with tf.init_scope():
            self.hold_encoder()

    # Whether `compile` was to scale the loss, which Keras does not store.
    _scales_loss = True

    @property
    def computes_in_float16(self) -> bool:
        """Whether the encoder uses float16, so that the loss must be scaled."""
        policy = self.encoder_info.backbone.dtype_policy
        return policy.compute_dtype == "float16"

    def compile(
        self,
        optimizer: Any = "rmsprop",
        loss: Any = None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Compiles the model; warns if the loss expects probabilities.

        If the encoder computes in float16, the optimizer scales the loss. As
        in Keras, `auto_scale_loss=False` turns this off.
        """
        loss_checks.warn_of_probabilities(self.head, loss)
        self._scales_loss = kwargs.get("auto_scale_loss", True)
        if self.computes_in_float16 and self._scales_loss:
            optimizer = loss_scaling.with_loss_scale(optimizer)
        super().compile(optimizer, loss, *args, **kwargs)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains the model; logs how many steps overflowed and were skipped.

        Steps can overflow only if the encoder computes in float16.
        """
        before = loss_scaling.count_skipped(self)
        history = super().fit(*args, **kwargs)
        loss_scaling.say_skipped(self, before)
        return history

    def get_compile_config(self) -> dict[str, Any] | None:
        config = super().get_compile_config()
        if not config:  # The model is not compiled.
            return config
        return {**config, "auto_scale_loss": self._scales_loss}

    def compile_from_config(self, config: dict[str, Any]) -> None:
        # Keras does not do this for models that override `compile`.
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def make_train_function(
        self, force: bool = False
    ) -> Callable[..., Any] | None:
        self.hold_encoder()
        return super().make_train_function(force)

    def make_test_function(
        self, force: bool = False
    ) -> Callable[..., Any] | None:
        self.check_encoder()
        return super().make_test_function(force)

    def make_predict_function(
        self, force: bool = False
    ) -> Callable[..., Any] | None:
        self.check_encoder()
        return super().make_predict_function(force)

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.check_encoder()
        super().save(*args, **kwargs)

    def save_weights(self, *args: Any, **kwargs: Any) -> None:
        self.check_not_folded()
        self.check_encoder()
        super().save_weights(*args, **kwargs)

    def load_weights(self, *args: Any, **kwargs: Any) -> None:
        self.check_not_folded()
        self.hold_encoder()
        super().load_weights(*args, **kwargs)

    def export(self, *args: Any, **kwargs: Any) -> None:
        self.check_encoder()
        super().export(*args, **kwargs)


def _is_traced() -> bool:
    """Returns whether a graph is being built, in which weights have no values.

    Keras's `fit` and others check the encoder before they build their graphs.
    """
    if keras.backend.backend() != "tensorflow":
        return in_stateless_scope()
    # Imported here, because models also work without TensorFlow.
    import tensorflow as tf

    return not tf.executing_eagerly()


def as_sequences(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Reshapes inputs `(batch, choices or windows, tokens)` to two axes.

    Each choice or window becomes a sequence of its own. Inputs that have two
    axes are returned unchanged.
    """
    if len(inputs["token_ids"].shape) < 3:
        return inputs
    return {
        name: ops.reshape(value, (-1, ops.shape(value)[-1]))
        for name, value in inputs.items()
    }
