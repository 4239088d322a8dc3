"""Encoder, method and head as one Keras model that knows what trains."""

import keras
from keras import ops

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.encoder import encoder_fingerprint
from tf_adapters.layers.reparameterization import Reparameterization
from tf_adapters.layers.stateless_seeds import StatelessSeeds
from tf_adapters.models import variable_groups
from tf_adapters.models.adapted_encoder import AdaptedEncoder


@keras.saving.register_keras_serializable("tf_adapters")
class AdapterModel(keras.Model):
    """An encoder with the slots of a method and, usually, a head.

    Everything that method and head do not declare trainable is frozen, variable
    by variable. The encoder's variables are used in place: what a method trains
    of them (norms, biases, or all) changes in `encoder` too.

    Args:
        encoder: `Encoder`, see `load_encoder`.
        method: A method, see `tf_adapters.methods`.
        head: A head, see `tf_adapters.heads`, or `None` (default): the model
            then returns the encoder's outputs.
        use_encoder_dropout: Whether the encoder's dropout acts in training, as
            in the papers. Defaults to `True`.
        seed: Integer. Seed of the dropout under Keras's `fit`.

    Call arguments:
        inputs: Dict of integer tensors `(batch, tokens)`: `token_ids`,
            `padding_mask`, and `segment_ids` where the backbone takes them.
            For a head of choices `(batch, choices, tokens)`, and a choice
            without a token is none.
        training: Whether dropout acts.
        seed: Integer tensor of shape `(2,)` that all dropout of this call
            follows from; by default drawn from the model's own generator.

    Returns:
        The head's output, float32: `(batch, classes)` logits, `(batch, 1)`
        numbers, `(batch, choices)` scores or what else its layer returns.
        Without a head the dict of `AdaptedEncoder`.
    """

    def __init__(
        self,
        encoder,
        method,
        head=None,
        use_encoder_dropout=True,
        seed=0,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)
        _check_pooler(head, encoder)
        self.fingerprint = encoder_fingerprint(encoder)
        backbone = encoder.backbone
        self.encoder_info = encoder
        self.method = method
        self.head = head
        self.use_encoder_dropout = use_encoder_dropout
        # The trained adapters in the slots of a fusion; see `members`.
        self.members = ()
        slots = method.make_slots(
            backbone.num_layers, backbone.hidden_dim, backbone.intermediate_dim
        )
        self.encoder = AdaptedEncoder(
            encoder, slots, use_encoder_dropout, name="encoder"
        )
        self.head_layer = None
        if head is not None:
            self.head_layer = head.make_layer()
            self.head_layer.build(self.encoder.width)
        self.reparameterization = Reparameterization(
            method.reparameterize(self)
            if hasattr(method, "reparameterize")
            else [],
            name="reparameterization",
        )
        self.seed_generator = keras.random.SeedGenerator(seed)
        self._freeze_all_but_declared()
        self.built = True

    @property
    def slots(self):
        """One dict for each block, from slot name to slot layer."""
        return self.encoder.slots

    def leave_out(self, blocks):
        """Takes what the method added out of some blocks, for inference.

        The model is faster and no longer quite the one that was trained
        (AdapterDrop, Rueckle et al. 2021, arXiv:2010.11918).

        Args:
            blocks: Indices of blocks.

        Raises:
            ValueError: If a block does not exist.
        """
        unknown = sorted(set(blocks) - set(range(len(self.slots))))
        if unknown:
            raise ValueError(
                f"There are no blocks {unknown}: the encoder has blocks 0 to "
                f"{len(self.slots) - 1}."
            )
        for block in blocks:
            self.encoder.empty_slots(block)

    def call(self, inputs, training=None, seed=None):
        if training and seed is None:
            seed = self.seed_generator.next() * StatelessSeeds.DRAWS_PER_PASS
        if training:
            seed = ops.convert_to_tensor(seed)
        reads = None if self.head is None else self.head.reads
        drops = bool(training) and not self.reparameterization.replaces_dropout
        # The encoder draws with this seed; the others must not draw the same.
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

    def encode(self, inputs, **options):
        """Returns the encoder's outputs in evaluation, as the head sees them.

        Args:
            inputs: As in a call.
            **options: See the call of `AdaptedEncoder`, which knows nothing of
                what a method does to its weights.
        """
        with self.reparameterization.scope():
            return self.encoder(as_sequences(inputs), training=False, **options)

    def merge(self):
        """Writes what a method does to the encoder's weights into them.

        LoRA's products, or the differences of diff pruning; the encoder is then
        a plain one with their outputs. A merged model answers as before, but
        can neither train nor be saved before `unmerge`.
        """
        self.reparameterization.merge()

    def unmerge(self):
        """Takes out again what `merge` wrote, exactly."""
        self.reparameterization.unmerge()

    def variable_groups(self):
        """Returns all weights as (group, whether it trains, variables).

        Raises:
            ValueError: If a variable belongs to no group.
        """
        return variable_groups.variable_groups(self)

    def encoder_variables_read(self):
        """Returns the encoder's weights that this model's outputs depend on."""
        variables = self.encoder.used_variables()
        if self.head is not None and self.head.reads != "pooled_output":
            pooler = {id(v) for v in self.encoder.pooler_variables()}
            variables = [v for v in variables if id(v) not in pooler]
        return variables

    def declared_encoder_variables(self):
        """Returns the encoder's weights that the method trains."""
        read = {id(v) for v in self.encoder_variables_read()}
        declared = self.method.trainable_encoder_variables(self.encoder)
        return [v for v in declared if id(v) in read]

    def _freeze_all_but_declared(self):
        for _, trains, variables in self.variable_groups():
            for variable in variables:
                variable.trainable = trains

    def trained_variables(self):
        """Returns a dict from name to variable of everything that trains.

        Raises:
            ValueError: If two variables have the same name, or if the model is
                merged: the encoder then holds what trained.
        """
        self._check_not_merged()
        variables = [
            variable
            for _, trains, variables in self.variable_groups()
            if trains
            for variable in variables
        ]
        named = {variable.path: variable for variable in variables}
        if len(named) != len(variables):
            raise ValueError("Two trained variables have the same name.")
        return named

    def penalty(self):
        """Returns the method's own term of the loss, a scalar."""
        if not hasattr(self.method, "penalty"):
            return ops.zeros(())
        return ops.convert_to_tensor(self.method.penalty(self), "float32")

    def last_phase_step(self, total_steps):
        """Returns the step after which the method's last phase begins, or 0."""
        if not hasattr(self.method, "last_phase_step"):
            return 0
        return self.method.last_phase_step(total_steps)

    def phases(self, total_steps):
        """Returns pairs: a phase's steps, and the factor of its rate."""
        first = self.last_phase_step(total_steps)
        if not first:
            return [(total_steps, 1.0)]
        factor = self.method.last_phase_learning_rate_multiplier
        return [(first, 1.0), (total_steps - first, factor)]

    def start_last_phase(self):
        """Begins the method's last phase of training."""
        self.method.start_last_phase(self)

    def _check_not_merged(self):
        if self.reparameterization.merged:
            raise ValueError(
                "The trained weights are merged into the encoder's, so they "
                "can be neither saved nor trained. Call `unmerge()` first."
            )

    def compute_loss(self, *args, **kwargs):
        """Returns Keras's loss plus the method's penalty, for `fit`."""
        return super().compute_loss(*args, **kwargs) + self.penalty()

    def get_config(self):
        self._check_not_merged()
        info = vars(self.encoder_info)
        backbone = keras.saving.serialize_keras_object(info["backbone"])
        return {
            "encoder": {**info, "backbone": backbone},
            "method": methods.to_config(self.method),
            "head": None if self.head is None else heads.to_config(self.head),
            "use_encoder_dropout": self.use_encoder_dropout,
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        fields = dict(config.pop("encoder"))
        backbone = keras.saving.deserialize_keras_object(fields["backbone"])
        head = config.pop("head")
        fingerprint = config.pop("fingerprint")
        model = cls(
            encoder=Encoder(**{**fields, "backbone": backbone}),
            method=methods.from_config(config.pop("method")),
            head=None if head is None else heads.from_config(head),
            **config,
        )
        # The weights come later; until then the encoder is a random one.
        model.fingerprint = fingerprint
        return model


def adapt(encoder, method, head=None, **options):
    """Returns a Keras model of `encoder` with `method` and `head`.

    Args:
        encoder: `Encoder`, see `load_encoder`.
        method: A method, for example `tf_adapters.methods.Houlsby(units=64)`.
        head: A head, for example `tf_adapters.heads.Classification(labels)`.
        **options: See `AdapterModel`.

    Raises:
        ValueError: If the method is a fusion, whose adapters `fuse` reads.
    """
    if getattr(method, "adapters", ()):
        raise ValueError(
            "A fusion takes the weights of trained adapters, which "
            "`tf_adapters.fuse(encoder, method, head)` reads."
        )
    return AdapterModel(encoder, method, head, **options)


def as_sequences(inputs):
    """Returns inputs `(batch, choices, tokens)` as one sequence a choice."""
    if len(inputs["token_ids"].shape) < 3:
        return inputs
    return {
        name: ops.reshape(value, (-1, ops.shape(value)[-1]))
        for name, value in inputs.items()
    }


def _check_pooler(head, encoder):
    reads = None if head is None else head.reads
    if reads == "pooled_output" and not encoder.has_pooler:
        raise ValueError(
            f"The head reads `pooled_output`, but encoder `{encoder.name}` has "
            "no pooler. Use reads='first_token'."
        )
