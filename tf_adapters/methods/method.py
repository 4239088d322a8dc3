"""The contract of a method, and the registry of all methods."""

import dataclasses

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_choices
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.registry import Registry

# Name to class; `register` fills it.
METHODS = Registry("method", "@tf_adapters.methods.register")


@dataclasses.dataclass(frozen=True)
class EncoderShape:
    """The sizes of an encoder that a method makes its slots for.

    Attributes:
        num_blocks: Number of transformer blocks.
        width: Width `d` of the token vectors.
        ffn_width: Width of the feed-forward network.
        num_heads: Attention heads, which divide `d`.
        embedding_width: Width of the word embeddings; `None` (default) for
            `width`. ELECTRA's small models have narrower ones.
    """

    num_blocks: int
    width: int
    ffn_width: int
    num_heads: int = 1
    embedding_width: int | None = None

    @classmethod
    def of(cls, backbone):
        """Returns the sizes of a KerasHub backbone."""
        return cls(
            num_blocks=backbone.num_layers,
            width=backbone.hidden_dim,
            ffn_width=backbone.intermediate_dim,
            num_heads=backbone.num_heads,
            embedding_width=backbone.token_embedding.embeddings.shape[-1],
        )

    def read_in(self, place):
        """Returns the width of what a slot reads in a place."""
        if place == "word_embeddings":
            return self.embedding_width or self.width
        return self.ffn_width if place == "ffn_down" else self.width

    def of_projection(self, name):
        """Returns the widths that a projection reads and writes."""
        writes = self.ffn_width if name == "ffn_up" else self.width
        return self.read_in(name), writes


@dataclasses.dataclass(frozen=True)
class Method:
    """What is added to an encoder, and what of the encoder trains.

    A method is a frozen dataclass of its hyper-parameters that overrides what
    it needs of the following; what it does not override adds nothing. Each
    field has a default.

    Examples:
        >>> @methods.register("top_norm")
        ... @dataclasses.dataclass(frozen=True)
        ... class TopNorm(methods.Method):
        ...     def trainable_encoder_variables(self, encoder):
        ...         return encoder.norm_variables()[-2:]
        >>> model = tf_adapters.adapt(encoder, TopNorm())
        >>> [variable.name for variable in model.trainable_weights]
        ['gamma', 'beta']
    """

    # Blocks without slots, trained adapters and tasks of a method that has
    # such a field.
    leave_out = ()
    adapters = ()
    tasks = ()
    # By how many positions the text moves on, for what stands before it.
    position_offset = 0
    # How banks and fusions stack what it trained: a key of
    # `bottleneck_slots.PLACEMENTS`, for a method whose slots are
    # `BottleneckSlot`s at those places and that has the settings of `Pfeiffer`.
    # `None`: they refuse it.
    stacks_as = None
    # The factor of the learning rate in the last phase; see `last_phase_step`.
    last_phase_learning_rate_multiplier = 1.0

    def __new__(cls, *args, **settings):
        dataclass_config.check_fields(cls, settings)
        return super().__new__(cls)

    def __post_init__(self):
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, tuple) and isinstance(value, list):
                # As a folder gives it: two are equal, and one can be a key.
                object.__setattr__(self, field.name, tuple(value))
        dataclass_config.check_values(self)
        check_choices(self)

    def make_slots(self, shape):
        """Returns the slots of the blocks; see `tf_adapters.layers.slot`.

        Args:
            shape: `EncoderShape`.

        Returns:
            List of one dict for each block, from place to `Slot`. A slot, or a
            layer in it, may recur.
        """
        return [{} for _ in range(shape.num_blocks)]

    def make_embedding_slots(self, shape):
        """Returns a dict from `word_embeddings` and `embeddings` to slots."""
        return {}

    def trainable_encoder_variables(self, encoder):
        """Returns the variables that train of an `AdaptedEncoder` itself."""
        return []

    def reparameterize(self, model):
        """Returns pairs of a variable and the layer that computes its value.

        See `tf_adapters.layers.reparameterization`.
        """
        return []

    def folds(self, model):
        """Returns pairs of a kernel and a slot whose `folded` gives its value.

        `AdapterModel.fold` writes these values into the encoder and zeros
        into the slots.
        """
        return []

    def penalty(self, model):
        """Returns a scalar that joins the loss."""
        return 0.0

    def report(self, model):
        """Returns a dict of numbers about a trained model, for its result."""
        return {}

    def last_phase_step(self, total_steps):
        """Returns the step after which `start_last_phase` is called, or 0.

        Only weights from then on count; the schedule begins anew.
        """
        return 0

    def start_last_phase(self, model):
        """Begins the last phase of training."""

    def reopen(self, model):
        """Lets go on training what an adapter folder has as final."""

    def pack(self, tensors):
        """Returns what an adapter folder stores of a dict of tensors."""
        return tensors

    def unpack(self, tensors, shapes):
        """Returns the tensors that `pack` was given.

        Args:
            tensors: Dict from name to array.
            shapes: Dict from name to shape of the model's variables.
        """
        return tensors

    def own_training(self):
        """Returns the function that trains a run, or `None` for the trainer.

        Override it only in a method that puts nothing into an encoder. The
        function takes a `Config`, a `Task`, a dict from split to rows, the path
        of the run folder, and the keywords `test` (whether to evaluate on the
        test split) and `overwrite`. It writes the run folder and returns the
        result.
        """
        return None

    def kept_blocks(self, shape):
        """Returns for each block whether it has slots.

        Raises:
            UserError: If `leave_out` names a block that does not exist.
        """
        last = shape.num_blocks - 1
        unknown = [i for i in self.leave_out if not 0 <= i <= last]
        if unknown:
            raise UserError(
                f"`leave_out` names blocks {cut(unknown)}, but the encoder has "
                f"blocks 0 to {last}."
            )
        return [i not in self.leave_out for i in range(shape.num_blocks)]

    def fill_places(self, shape, places, make):
        """Returns what `make_slots` does, the same places in each kept block.

        Args:
            shape: `EncoderShape`.
            places: Names of places, see `tf_adapters.layers.slot`.
            make: Function that is called as `make(place, name=...)` and returns
                the slot of that name.
        """
        return [
            {place: make(place, name=f"block_{i}_{place}") for place in places}
            if kept
            else {}
            for i, kept in enumerate(self.kept_blocks(shape))
        ]


def register(name):
    """Returns a decorator that makes a `Method` known by a name.

    Args:
        name: What `--method` takes and adapter folders store.

    Raises:
        UserError: If the class is no `Method`, a field has no default, or the
            name is taken.
    """

    def decorate(cls):
        for field in getattr(cls, "__dataclass_fields__", {}).values():
            if field.default is dataclasses.MISSING:
                raise UserError(
                    f"{cls.__name__}: the setting `{field.name}` needs a "
                    "default, which is what `--method` alone gives."
                )
        METHODS.add(name, cls, Method)
        return cls

    return decorate


def name_of(method):
    """Returns the name that a method's class is registered by."""
    return METHODS.name_of(method)


def to_config(method):
    """Returns a method as a dict of plain values with its `name`.

    A parameter that is a method, or a tuple of them, becomes dicts too.
    """
    values = {
        field.name: _to_plain(getattr(method, field.name))
        for field in dataclasses.fields(method)
    }
    return {"name": name_of(method)} | values


def _to_plain(value):
    if isinstance(value, Method):
        return to_config(value)
    if isinstance(value, tuple) and any(isinstance(v, Method) for v in value):
        return [to_config(v) for v in value]
    return value


def from_config(config):
    """Returns the method that `to_config` described.

    Raises:
        UserError: If the name or a hyper-parameter is not known, or has the
            wrong type.
    """
    options = dict(config)
    name = options.pop("name", None)
    check_known("method", name, METHODS)
    options = {key: _to_methods(value) for key, value in options.items()}
    return dataclass_config.from_dict(METHODS[name], options, "method.")


def _to_methods(value):
    if isinstance(value, dict):
        return from_config(value)
    if isinstance(value, list) and any(isinstance(v, dict) for v in value):
        return tuple(from_config(v) for v in value)
    return value
