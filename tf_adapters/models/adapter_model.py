"""Encoder, method and head as one Keras model."""

from typing import Any
import warnings

import keras
from keras import ops
import keras_hub

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.common.types import Tensor
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.encoder import as_encoder
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import pass_seed
from tf_adapters.models import freezing
from tf_adapters.models import model_config
from tf_adapters.models.assembled_model import AssembledModel
from tf_adapters.models.encoder_checks import check_inputs
from tf_adapters.models.encoder_model import as_sequences
from tf_adapters.models.replicas import replica_number


@keras.saving.register_keras_serializable("tf_adapters")
class AdapterModel(AssembledModel):
    """An encoder with the slots of a method and, usually, a head.

    Only the variables that method and head declare are trainable. All others
    are frozen and stay frozen if `trainable` is set to `True`: to train the
    encoder, use the method `Full`. You can freeze trained parts as in any Keras
    model, for example with `model.head_layer.trainable = False`. In the encoder
    itself you can freeze layers, but not single variables.

    Models use the encoder's layers in place and share them as long as no method
    trains the encoder. Once a model has trained some of it (norms, biases, or
    all weights), other models of that encoder raise an error, and so does
    building a new one, until you call `encoder.restore()`. Load a separate
    encoder for each model whose method trains some of it.

    Args:
        encoder: `Encoder`, see `load_encoder`.
        method: A method, see `tf_adapters.methods`.
        head: A head, see `tf_adapters.heads`, or `None` (default): the model
            then returns the encoder's outputs.
        use_encoder_dropout: Whether to apply the encoder's dropout in training,
            as in the papers. Defaults to `True`.
        seed: Integer from 0 (default) to 4,294,967,295. Seed of the dropout
            under Keras's `fit`. Each replica of a `tf.distribute` strategy
            draws its own masks.
        below: Composition of the methods of frozen adapters below this
            method, or `None` (default); `compose` loads their weights.
        remat: Whether to recompute the activations within a block in the
            backward pass (`keras.remat`), which takes less memory and more
            time. Defaults to `False`.
        **kwargs: See `keras.Model`.

    Call arguments:
        inputs: Dict of integer tensors `(batch, tokens)`: `token_ids`,
            `padding_mask`, and `segment_ids` if the backbone takes them. The
            shape is `(batch, choices, tokens)` for a multiple-choice head, and
            `(batch, windows, tokens)` for a head that reads windows. Choices
            and windows without tokens are ignored.
        training: Whether to apply dropout.
        seed: Integer tensor of shape `(2,)` that determines all dropout masks
            of this call. By default it is drawn from the model's own generator.

    Raises:
        UserError: If an argument has the wrong type, or another model has
            changed the encoder.

    Returns:
        The head's output, float32: `(batch, classes)` logits, `(batch, 1)`
        numbers, `(batch, choices)` scores, or other outputs of its layer.
        Without a head, the dict that `AdaptedEncoder` returns.

    Examples:
        >>> model = tf_adapters.AdapterModel(encoder, methods.Houlsby(), head)
        >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        >>> model.compile("adam", loss)
        >>> history = model.fit(features, np.array([1, 0]), verbose=0)
        >>> model.predict(features, verbose=0).shape
        (2, 2)
    """

    def check_features(self, inputs: Any) -> None:
        """Raises a `UserError` if the encoder cannot take these inputs."""
        check_inputs(self.encoder, inputs)

    def feature_shapes(self) -> dict[str, tuple[None, ...]]:
        """Returns a dict from the name of an input to its shape."""
        head = heads.Head if self.head is None else self.head
        names = [tensor.name for tensor in self.encoder.embeddings.inputs]
        return dict.fromkeys(names, head.feature_shape) | head.further_features

    def call(
        self,
        inputs: dict[str, Tensor],
        training: bool | None = None,
        seed: Tensor | None = None,
    ) -> Any:
        masks: Any = None
        if training:
            self._hold_while_tracing()
            masks = ops.convert_to_tensor(
                self._draw_seed() if seed is None else seed
            )
        reads = None if self.head is None else self.head.reads
        drops = bool(training) and not self.reparameterization.replaces_dropout
        # Encoder, method and head need different dropout masks.
        with self.reparameterization.scope(
            StatelessSeeds(masks + 2) if training else None
        ):
            outputs = self.encoder(
                as_sequences(inputs),
                training=bool(training),
                # Without a seed, the encoder has no dropout.
                seed=masks if drops else None,
                first_token_only=reads in ("first_token", "pooled_output"),
            )
            if self.head is None or self.head_layer is None:
                return outputs
            seeds = StatelessSeeds(masks + 1) if drops else None
            if self.head.reads_token_embeddings:
                outputs["token_embeddings"] = self.encoder.token_embeddings
            return self.head_layer({**inputs, **outputs}, seeds=seeds)

    def _draw_seed(self) -> Tensor:
        """Returns a seed that differs between calls and between replicas."""
        run, step = ops.unstack(self.seed_generator.next(), 2)
        place = ops.cast(replica_number(), step.dtype)
        return pass_seed(run, place, step)

    def encode(
        self, inputs: dict[str, Tensor], **options: Any
    ) -> dict[str, Any]:
        """Returns the outputs of the encoder and its slots in evaluation mode.

        If the method computes values for weights of the encoder, these values
        are used, unlike in a direct call of `model.encoder`.

        Args:
            inputs: As in a call.
            **options: See the call arguments of `AdaptedEncoder`.

        Raises:
            UserError: If another model has changed the encoder.
        """
        self.check_call()
        with self.reparameterization.scope():
            return self.encoder(as_sequences(inputs), training=False, **options)

    def merge(self) -> None:
        """Calls `fold`. The name `merge` is deprecated."""
        _warn_of_old_name("merge", "fold")
        self.fold()

    def unmerge(self) -> None:
        """Calls `unfold`. The name `unmerge` is deprecated."""
        _warn_of_old_name("unmerge", "unfold")
        self.unfold()

    @property
    def trainable(self) -> bool:
        """Whether the variables that method and head declare are trained.

        Setting it to `True` leaves all other variables frozen.
        """
        return super().trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        inherited: Any = keras.Model.trainable
        inherited.fset(self, value)
        if value:
            freezing.freeze_all_but_declared(self)

    @property
    def trainable_variables(self) -> list[keras.Variable]:
        return self._freezing.trained(self, self.variables)

    @property
    def non_trainable_variables(self) -> list[keras.Variable]:
        return self._freezing.frozen(self, self.variables)

    @property
    def trainable_weights(self) -> list[keras.Variable]:
        return self._freezing.trained(self, self.weights)

    @property
    def non_trainable_weights(self) -> list[keras.Variable]:
        return self._freezing.frozen(self, self.weights)

    def penalty(self) -> Tensor:
        """Returns the term that the method adds to the loss, a scalar.

        As for a regularizer, it is one of the `losses` of the model, and of any
        Keras model that contains it.
        """
        return ops.convert_to_tensor(self.method.penalty(self), "float32")

    def last_phase_step(self, total_steps: int) -> int:
        """Returns the step after which the last phase of training begins.

        Returns 0 if the training has only one phase.
        """
        return self.method.gating.last_phase_step(total_steps)

    def phases(self, total_steps: int) -> list[tuple[int, float]]:
        """Returns a list of (steps, learning rate factor), one per phase."""
        first = self.last_phase_step(total_steps)
        if not first:
            return [(total_steps, 1.0)]
        factor = self.method.gating.last_phase_learning_rate_multiplier
        return [(first, 1.0), (total_steps - first, factor)]

    def start_last_phase(self) -> None:
        """Prepares the model for the last phase of the method's training."""
        self.method.gating.start_last_phase(self)

    def regularization(self) -> Tensor:
        """Returns `penalty` plus the regularizers of weights, a scalar."""
        return self.penalty() + sum(self._get_regularization_losses())

    def _get_own_losses(self) -> list[Tensor]:
        # Keras collects these from all layers of a model. `losses` therefore
        # has the penalty, also that of a model which contains this one.
        losses = super()._get_own_losses()
        # Without a penalty, Keras still refuses to train without a loss.
        has_none = isinstance(self.method.penalty(self), int | float)
        return losses if has_none else [*losses, self.penalty()]

    def get_config(self) -> dict[str, Any]:
        self.check_not_folded()
        self.check_encoder()
        return {**super().get_config(), **model_config.config_of(self)}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "AdapterModel":
        return model_config.model_from(cls, config)


def check_adapter_model(model: object, call: str) -> None:
    """Raises a `UserError` unless a model is an `AdapterModel`.

    Args:
        model: Argument `model` of a function.
        call: Name of the function, for the message.
    """
    if not isinstance(model, AdapterModel):
        raise UserError(
            f"Expected as `model` of `{call}` an `AdapterModel`, as `adapt`, "
            "`compose` or `load_adapter` returns it. Call it for each of the "
            "`models` of a `ParallelModel`, and for `adapter_model` of a "
            f"`TextModel`. Received: {model!r:.100}"
        )


def _warn_of_old_name(old: str, new: str) -> None:
    warnings.warn(
        f"`AdapterModel.{old}` is now called `{new}`, and the old name will be "
        f"removed. Call `model.{new}()`.",
        DeprecationWarning,
        stacklevel=3,
    )


def adapt(
    encoder: Encoder | keras_hub.models.Backbone,
    method: methods.Method,
    head: heads.Head | None = None,
    **options: Any,
) -> AdapterModel:
    """Returns a Keras model of `encoder` with `method` and `head`.

    Args:
        encoder: `Encoder`, see `load_encoder`, or a KerasHub backbone.
        method: A method, for example `tf_adapters.methods.Houlsby(units=64)`.
        head: A head, for example `tf_adapters.heads.Classification(labels)`,
            or `None` (default) for the encoder's outputs.
        **options: See `AdapterModel`.

    Raises:
        UserError: If an argument has the wrong type, or if the method is a
            fusion. Use `fuse` for fusions: it loads the adapters to combine.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Houlsby(units=64), head)
        >>> tuple(model(features).shape)
        (2, 2)
    """
    if isinstance(method, methods.Fusion):
        raise UserError(
            "A fusion needs trained adapters. Use `tf_adapters.fuse(encoder, "
            "method, head)`, which loads them."
        )
    return AdapterModel(as_encoder(encoder), method, head, **options)
