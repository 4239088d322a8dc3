"""Encoder, method and head as one Keras model, with the right parts frozen."""

import warnings

import keras
from keras import ops

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.encoders.encoder import as_encoder
from tf_adapters.layers.reparameterization import Reparameterization
from tf_adapters.layers.slot import check_names
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.layers.stateless_seeds import pass_seed
from tf_adapters.models import freezing
from tf_adapters.models import loss_checks
from tf_adapters.models import loss_scaling
from tf_adapters.models import model_config
from tf_adapters.models import model_slots
from tf_adapters.models import part_checks
from tf_adapters.models import variable_groups
from tf_adapters.models.encoder_checks import check_inputs
from tf_adapters.models.encoder_model import EncoderModel
from tf_adapters.models.replicas import replica_number


@keras.saving.register_keras_serializable("tf_adapters")
class AdapterModel(EncoderModel):
    """An encoder with the slots of a method and, usually, a head.

    Only the variables that method and head declare are trainable. All others
    are frozen and stay frozen if `trainable` is set to `True`: to train the
    encoder, use the method `Full`. You can freeze trained parts as in any Keras
    model, for example with `model.head_layer.trainable = False`. In the encoder
    itself you can freeze layers, but not single variables.

    Models use the encoder's layers in place and share them as long as no method
    trains the encoder. Once a model has trained some of it (norms, biases, or
    all weights), other models of that encoder raise an error, and so does
    building a new one, until you call `encoder.restore()`. Load one encoder for
    each model with a method that trains some of it.

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
            choices without tokens are ignored; likewise for a head that reads
            windows.
        training: Whether to apply dropout.
        seed: Integer tensor of shape `(2,)` that determines all dropout masks
            of this call. By default it is drawn from the model's own generator.

    Raises:
        UserError: If an argument has the wrong type, or another model has
            changed the encoder.

    Returns:
        The head's output, float32: `(batch, classes)` logits, `(batch, 1)`
        numbers, `(batch, choices)` scores, or other outputs of its layer.
        Without a head, the dict of `AdaptedEncoder`.

    Examples:
        >>> model = tf_adapters.AdapterModel(encoder, methods.Houlsby(), head)
        >>> loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        >>> model.compile("adam", loss)
        >>> history = model.fit(features, np.array([1, 0]), verbose=0)
        >>> model.predict(features, verbose=0).shape
        (2, 2)
    """

    def __init__(
        self,
        encoder,
        method,
        head=None,
        use_encoder_dropout=True,
        seed=0,
        below=None,
        remat=False,
        **kwargs,
    ):
        part_checks.check_parts(encoder, method, head)
        part_checks.check_seed(seed)
        super().__init__(encoder, **kwargs)
        self.method = method
        self.head = head
        self.use_encoder_dropout = use_encoder_dropout
        self.seed = seed
        self.remat = remat
        # Blocks from which `leave_out` removed the method's slots.
        self.left_out = ()
        # The trained adapters of a fusion or a composition; see `Member`.
        self.members = ()
        # The composition of frozen adapters below the method, or None.
        self.below = below
        self.encoder, own, self.slots_below = model_slots.adapted_encoder(
            self, encoder
        )
        # In a function, or else Keras would track them as layers of the model.
        self._own_slots = lambda: own
        for slot in self.all_slots():
            check_names(slot)
        self.head_layer = None if head is None else self._make_head_layer()
        self.reparameterization = Reparameterization(
            method.reparameterize(self),
            lambda: part_checks.foldable(method.folds(self)),
            name="reparameterization",
        )
        self.seed_generator = keras.random.SeedGenerator(seed)
        self._freezing = freezing.Freezing(self)
        declared = self.declared_encoder_variables()
        self.may_change(declared)
        part_checks.check_trained_dtypes(self)
        if remat:
            self.encoder.rematerialize(
                [
                    *variable_groups.trained_additions(self),
                    *declared,
                    *self.reparameterization.computed(),
                ]
            )
        freezing.unfreeze_layers(encoder.backbone)
        freezing.freeze_all_but_declared(self)
        self.built = True

    def _make_head_layer(self):
        layer = self.head.make_layer()
        layer.build((None, None, self.encoder.width))
        self.head.attach(layer, self.encoder)
        return layer

    @property
    def computes_in_float16(self):
        """Whether the encoder uses float16, so that the loss must be scaled."""
        policy = self.encoder.backbone.dtype_policy
        return policy.compute_dtype == "float16"

    @property
    def slots(self):
        """One dict for each block, from place to slot."""
        return self.encoder.slots

    def all_slots(self):
        """Returns the slots of embeddings and blocks, each only once."""
        return model_slots.distinct([self.encoder.embedding_slots, *self.slots])

    def own_slots(self):
        """Returns the method's own slots, each only once.

        In a composition, a single slot at each place combines these with the
        slots of the adapters below.
        """
        return self._own_slots()

    def leave_out(self, blocks):
        """Removes the method's slots from some blocks, for inference.

        The model becomes faster, and its outputs change slightly (AdapterDrop,
        Rueckle et al. 2021, arXiv:2010.11918). `.keras` files and
        `save_adapter` save the model without these slots. Keras's `predict` and
        `evaluate` use the changed model. A `tf.function` of your own that was
        called before does not, because it keeps its old graph.

        Args:
            blocks: Indices of blocks. An empty list has no effect.

        Raises:
            UserError: If a block does not exist, the method adds nothing to
                blocks, or the model is folded.
        """
        model_slots.leave_out(self, blocks)

    def without(self, blocks):
        """Leaves blocks out, as `leave_out` does, within a `with` block."""
        return model_slots.without(self, blocks)

    def slot_weights(self, block, place):
        """Returns a dict from name to variable for the weights of one slot.

        The names are those in an adapter folder, without the slot's prefix
        `block_<i>_<place>/` (AdapterBias: `block_<i>/`). A bottleneck of width
        `m` has `delta/down_kernel` `(d, m)`, `delta/down_bias` `(m,)`,
        `delta/up_kernel` `(m, d)` and `delta/up_bias` `(d,)`. For other
        methods see the guide.

        Args:
            block: Index of a block.
            place: One of `tf_adapters.layers.slot.BLOCK_PLACES`, for example
                `"after_ffn"`.

        Raises:
            UserError: If the method has no slot there.
        """
        return model_slots.weights_of_slot(self.slots, block, place)

    def check_features(self, inputs):
        """Raises a `UserError` if the encoder cannot take these inputs."""
        check_inputs(self.encoder, inputs)

    def feature_shapes(self):
        """Returns a dict from the name of an input to its shape."""
        head = heads.Head if self.head is None else self.head
        names = [tensor.name for tensor in self.encoder.embeddings.inputs]
        return dict.fromkeys(names, head.feature_shape) | head.further_features

    def call(self, inputs, training=None, seed=None):
        if training:
            seed = self._draw_seed() if seed is None else seed
            seed = ops.convert_to_tensor(seed)
        reads = None if self.head is None else self.head.reads
        drops = bool(training) and not self.reparameterization.replaces_dropout
        # The encoder uses this seed. The others need different masks.
        with self.reparameterization.scope(
            StatelessSeeds(seed + 2) if training else None
        ):
            outputs = self.encoder(
                as_sequences(inputs),
                training=drops,
                seed=seed,
                first_token_only=reads in ("first_token", "pooled_output"),
            )
            if self.head_layer is None:
                return outputs
            seeds = StatelessSeeds(seed + 1) if drops else None
            outputs["token_embeddings"] = self.encoder.token_embeddings
            return self.head_layer({**inputs, **outputs}, seeds=seeds)

    def _draw_seed(self):
        """Returns a seed that differs between calls and between replicas."""
        run, step = ops.unstack(self.seed_generator.next(), 2)
        place = ops.cast(replica_number(), step.dtype)
        return pass_seed(run, place, step)

    def encode(self, inputs, **options):
        """Returns the encoder's outputs in evaluation, as the head sees them.

        The weights that the method computes are in effect, unlike in a direct
        call of `model.encoder`.

        Args:
            inputs: As in a call.
            **options: See the call arguments of `AdaptedEncoder`.
        """
        with self.reparameterization.scope():
            return self.encoder(as_sequences(inputs), training=False, **options)

    def fold(self):
        """Writes the method's changes to the encoder's weights into them.

        These are LoRA's products, for example, or the differences of diff
        pruning. The encoder is then a plain encoder with the adapted outputs. A
        folded model gives the same outputs, but you cannot train or save it
        before you call `unfold`.

        Raises:
            UserError: If another model has changed the encoder, or if several
                blocks share a kernel and each adds something different to it.
        """
        self.check_encoder()
        part_checks.check_foldable(self.method.folds(self))
        written = {id(v): v for v in self.reparameterization.written()}
        kernels = [v for v in self.encoder.backbone.weights if id(v) in written]
        self.encoder_info.loaded.keep(kernels, self.encoder_user)
        self.encoder_info.loaded.hold(self.encoder_user)
        self.reparameterization.fold()
        self._forget_graphs()

    def unfold(self):
        """Undoes `fold` exactly."""
        self.reparameterization.unfold()
        self._forget_graphs()

    def merge(self):
        """Warns that the method is now called `fold`, and calls it."""
        _warn_of_old_name("merge", "fold")
        self.fold()

    def unmerge(self):
        """Warns that the method is now called `unfold`, and calls it."""
        _warn_of_old_name("unmerge", "unfold")
        self.unfold()

    def variable_groups(self):
        """Returns all weights as (group, whether it trains, variables).

        Raises:
            UserError: If a variable belongs to no group.
        """
        return variable_groups.variable_groups(self)

    def encoder_variables_read(self):
        """Returns the encoder weights that affect this model's outputs."""
        variables = self.encoder.used_variables()
        if self.head is not None and self.head.reads != "pooled_output":
            pooler = {id(v) for v in self.encoder.pooler_variables()}
            variables = [v for v in variables if id(v) not in pooler]
        return variables

    def declared_encoder_variables(self):
        """Returns the encoder weights that the method trains."""
        read = {id(v) for v in self.encoder_variables_read()}
        declared = self.method.trainable_encoder_variables(self.encoder)
        return [v for v in declared if id(v) in read]

    def is_added(self, variable):
        """Returns whether a variable is trained and not the encoder's."""
        return self._freezing.is_added(variable)

    @property
    def trainable(self):
        """Whether the variables that method and head declare are trained.

        Setting it to `True` leaves all other variables frozen.
        """
        return super().trainable

    @trainable.setter
    def trainable(self, value):
        keras.Model.trainable.fset(self, value)
        if value:
            freezing.freeze_all_but_declared(self)

    @property
    def trainable_variables(self):
        return self._freezing.trained(self, self.variables)

    @property
    def non_trainable_variables(self):
        return self._freezing.frozen(self, self.variables)

    @property
    def trainable_weights(self):
        return self._freezing.trained(self, self.weights)

    @property
    def non_trainable_weights(self):
        return self._freezing.frozen(self, self.weights)

    def trained_variables(self):
        """Returns a dict from name to variable of everything that trains.

        Raises:
            UserError: If the model is folded, because the encoder then holds
                the trained weights, or if another model has changed the
                encoder.
        """
        self.check_not_folded()
        self.check_encoder()
        return variable_groups.by_stored_name(
            variable
            for _, trains, variables in self.variable_groups()
            if trains
            for variable in variables
        )

    def penalty(self):
        """Returns the term that the method adds to the loss, a scalar."""
        return ops.convert_to_tensor(self.method.penalty(self), "float32")

    def last_phase_step(self, total_steps):
        """Returns the step after which the last phase begins, or 0 if none."""
        return self.method.last_phase_step(total_steps)

    def phases(self, total_steps):
        """Returns (number of steps, learning rate factor) for each phase."""
        first = self.last_phase_step(total_steps)
        if not first:
            return [(total_steps, 1.0)]
        factor = self.method.last_phase_learning_rate_multiplier
        return [(first, 1.0), (total_steps - first, factor)]

    def start_last_phase(self):
        """Starts the last phase of the method's training."""
        self.method.start_last_phase(self)

    def check_not_folded(self):
        """Raises a `UserError` if the model is folded."""
        if self.reparameterization.folded:
            raise UserError(
                "The trained weights are folded into the encoder's, so they "
                "cannot be saved or trained, and adapters below them cannot "
                "be swapped. Call `unfold()` first."
            )

    def compile(self, optimizer="rmsprop", loss=None, *args, **kwargs):
        """Compiles the model; warns if the loss expects probabilities.

        If the encoder computes in float16, the optimizer scales the loss. As
        in Keras, `auto_scale_loss=False` turns this off.
        """
        loss_checks.warn_of_probabilities(self.head, loss)
        if self.computes_in_float16 and kwargs.get("auto_scale_loss", True):
            optimizer = loss_scaling.with_loss_scale(optimizer)
        super().compile(optimizer, loss, *args, **kwargs)

    def fit(self, *args, **kwargs):
        """Trains the model; logs how many steps float16 overflow skipped."""
        part_checks.check_trains(self)
        before = loss_scaling.count_skipped(self)
        history = super().fit(*args, **kwargs)
        loss_scaling.say_skipped(self, before)
        return history

    def compile_from_config(self, config):
        # Keras does not do this for models that override `compile`.
        self.compile(**keras.saving.deserialize_keras_object(config))
        self.optimizer.build(self.trainable_variables)

    def compute_loss(self, *args, **kwargs):
        """Returns Keras's loss plus the method's penalty, for `fit`.

        Each replica adds its share of the penalty, as for a regularizer.
        """
        penalty = self._aggregate_additional_loss(self.penalty())
        return super().compute_loss(*args, **kwargs) + penalty

    def get_config(self):
        self.check_not_folded()
        self.check_encoder()
        return {**super().get_config(), **model_config.config_of(self)}

    @classmethod
    def from_config(cls, config):
        return model_config.model_from(cls, config)


def _warn_of_old_name(old, new):
    warnings.warn(
        f"`AdapterModel.{old}` is now called `{new}`, and the old name will be "
        f"removed. Call `model.{new}()`.",
        DeprecationWarning,
        stacklevel=3,
    )


def adapt(encoder, method, head=None, **options):
    """Returns a Keras model of `encoder` with `method` and `head`.

    Args:
        encoder: `Encoder`, see `load_encoder`, or a KerasHub backbone.
        method: A method, for example `tf_adapters.methods.Houlsby(units=64)`.
        head: A head, for example `tf_adapters.heads.Classification(labels)`,
            or `None` (default) for the encoder's outputs.
        **options: See `AdapterModel`.

    Raises:
        UserError: If an argument has the wrong type, or if the method is a
            fusion. Use `fuse` for fusions, because it reads their adapters.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Houlsby(units=64), head)
        >>> tuple(model(features).shape)
        (2, 2)
    """
    if isinstance(method, methods.Method) and method.adapters:
        raise UserError(
            "A fusion needs trained adapters. Use `tf_adapters.fuse(encoder, "
            "method, head)`, which loads them."
        )
    return AdapterModel(as_encoder(encoder), method, head, **options)


def as_sequences(inputs):
    """Reshapes inputs `(batch, choices or windows, tokens)` to sequences."""
    if len(inputs["token_ids"].shape) < 3:
        return inputs
    return {
        name: ops.reshape(value, (-1, ops.shape(value)[-1]))
        for name, value in inputs.items()
    }
