"""The base class of all methods."""

from collections.abc import Callable
from collections.abc import Iterable
import dataclasses
import typing
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_choices
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.types import Tensor
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.support.gating import Gating
from tf_adapters.methods.support.number_checks import check_numbers

if TYPE_CHECKING:
    import keras


@dataclasses.dataclass(frozen=True)
class EncoderShape:
    """The sizes of the encoder for which a method makes its slots.

    Attributes:
        num_blocks: Number of transformer blocks.
        width: Width `d` of the token vectors.
        ffn_width: Width of the feed-forward network.
        num_heads: Number of attention heads, a divisor of `d`. Defaults to 1.
        embedding_width: Width of the word embeddings. `None` (default) means
            `width`. ELECTRA's small models have narrower embeddings.
        has_gate: Whether the feed-forward network is gated: its first
            projection then has `2 ffn_width` outputs. Defaults to `False`.
    """

    num_blocks: int
    width: int
    ffn_width: int
    num_heads: int = 1
    embedding_width: int | None = None
    has_gate: bool = False

    @classmethod
    def of(cls, encoder: Any) -> typing.Self:
        """Returns the sizes of an `Encoder`."""
        backbone = encoder.backbone
        return cls(
            num_blocks=backbone.num_layers,
            width=backbone.hidden_dim,
            ffn_width=backbone.intermediate_dim,
            num_heads=backbone.num_heads,
            embedding_width=backbone.token_embedding.output_dim,
            has_gate=encoder.architecture.has_gate,
        )

    def read_in(self, place: str) -> int:
        """Returns the width of the vectors that a slot at `place` reads."""
        if place == "word_embeddings":
            return self.embedding_width or self.width
        return self.ffn_width if place == "ffn_down" else self.width

    def build_slots(self, slots: dict[str, Slot]) -> None:
        """Builds the given slots, unless they are built already.

        `slots` is a dict from place to slot.
        """
        for place, slot in slots.items():
            if not slot.built:
                slot.build((None, None, self.read_in(place)))

    def of_projection(self, name: str) -> tuple[int, int]:
        """Returns the input and output width of the projection `name`."""
        writes = self.width
        if name == "ffn_up":
            writes = self.ffn_width * (2 if self.has_gate else 1)
        return self.read_in(name), writes


@dataclasses.dataclass(frozen=True)
class Method:
    """Defines what is added to an encoder and which of its variables train.

    A method is a frozen dataclass whose fields are its hyper-parameters, each
    with a default. A subclass overrides only the members below that it needs.
    The defaults of these members add nothing and train nothing.

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

    # Defaults for methods without these fields: indices of blocks without
    # slots, trained adapters that the method combines, and names of tasks.
    leave_out = ()
    adapters = ()
    tasks = ()
    # Number of positions by which the text is shifted, to make room for vectors
    # before it.
    position_offset: typing.ClassVar[int] = 0
    # A key of `bottleneck_slots.PLACEMENTS`, if the method has the settings of
    # `Pfeiffer` and attaches a `BottleneckSlot` at each of those places.
    # Otherwise `None`: the method's adapters cannot be members of a fusion.
    stacks_as: typing.ClassVar[str | None] = None
    # A sentence: why a `BankModel` cannot hold the method's adapters. Empty if
    # it can: all slots define `Slot.bank_parts`, and the method trains no
    # kernels of the encoder.
    not_in_bank: typing.ClassVar[str] = ""

    def __new__(cls, *args: Any, **settings: Any) -> typing.Self:
        dataclass_config.check_fields(cls, settings)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if isinstance(field.default, tuple) and isinstance(value, list):
                # Adapter folders store tuples as lists. Tuples keep equal
                # methods equal and hashable.
                items: list[Any] = value
                object.__setattr__(self, field.name, tuple(items))
        dataclass_config.check_values(self)
        check_choices(self)
        check_numbers(self)

    def make_slots(self, shape: EncoderShape) -> list[dict[str, Slot]]:
        """Creates the slots, the layers that the method attaches to blocks.

        See `tf_adapters.layers.slot`.

        Args:
            shape: `EncoderShape`.

        Returns:
            List with one dict for each block, from place to `Slot`. Several
            blocks may share a slot, or a layer in it.
        """
        return [{} for _ in range(shape.num_blocks)]

    def make_embedding_slots(self, shape: EncoderShape) -> dict[str, Slot]:
        """Creates the slots that the method attaches to the embeddings.

        Args:
            shape: `EncoderShape`.

        Returns:
            Dict from place to `Slot`. The places are `"word_embeddings"` and
            `"embeddings"`.
        """
        return {}

    def trainable_encoder_variables(
        self, encoder: Any
    ) -> "list[keras.Variable]":
        """Returns the variables that the method trains in an `AdaptedEncoder`.

        Only the encoder's own variables (such as norms and biases); the
        variables of layers that the method inserts are not among them.
        """
        return []

    def reparameterize(
        self, model: Any
    ) -> "list[tuple[keras.Variable, keras.layers.Layer]]":
        """Returns pairs of a stored variable and the layer that replaces it.

        The forward pass uses the value that the layer computes instead of the
        variable. See `tf_adapters.layers.reparameterization`.
        """
        return []

    def folds(self, model: Any) -> "list[tuple[keras.Variable, Slot]]":
        """Returns pairs of a kernel and the slot that can be folded into it.

        To fold a slot is to add its change to the encoder's own kernel:
        `AdapterModel.fold` assigns `slot.folded(kernel)` to the kernel and
        zeros to the slot's weights.
        """
        return []

    def penalty(self, model: Any) -> Tensor:
        """Returns the scalar that the method adds to the training loss."""
        return 0.0

    def report(self, model: Any) -> dict[str, Any]:
        """Returns a dict of named numbers that describe a trained model.

        The numbers become part of the run's result.
        """
        return {}

    @property
    def gating(self) -> Gating:
        """The `Gating` that prunes, stores and reopens gated weights.

        By default, a `Gating` that has no effect.
        """
        return Gating()

    def own_training(self) -> Callable[..., Any] | None:
        """Returns a function that replaces the usual training, or `None`.

        Override this only in a method that does not use an encoder. The
        function takes a `Config`, `TaskData`, the path of the run folder, and
        the keywords `test` (whether to evaluate on the test split) and
        `overwrite`. It writes the run folder and returns the run's result.
        """
        return None

    def kept_blocks(self, shape: EncoderShape) -> list[bool]:
        """Returns one boolean per block: `False` if `leave_out` names it.

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

    def fill_places(
        self,
        shape: EncoderShape,
        places: Iterable[str],
        make: Callable[..., Slot],
    ) -> list[dict[str, Slot]]:
        """Makes slots at the same places of all blocks except `leave_out`.

        Args:
            shape: `EncoderShape`.
            places: Names of places; see `tf_adapters.layers.slot`.
            make: Function that is called as `make(place, name=...)` and returns
                a slot with that name.

        Returns:
            List of dicts from place to `Slot`, as from `make_slots`.
        """
        return [
            {place: make(place, name=f"block_{i}_{place}") for place in places}
            if kept
            else {}
            for i, kept in enumerate(self.kept_blocks(shape))
        ]
