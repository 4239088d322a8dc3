"""Combines encoder, method and head, and freezes what must not train."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.layers.reparameterization import Reparameterization
from tf_adapters.layers.slot import Slot
from tf_adapters.layers.slot import check_names
from tf_adapters.models import freezing
from tf_adapters.models import model_checks
from tf_adapters.models import model_slots
from tf_adapters.models import variable_groups
from tf_adapters.models.composition import Composition
from tf_adapters.models.encoder_model import EncoderModel

if TYPE_CHECKING:
    from tf_adapters.models.trained_members import Member


class AssembledModel(EncoderModel):
    """Base class with the slots and weights of an `AdapterModel`.

    It decides which of them train. `AdapterModel` adds the forward pass.

    Args:
        encoder: See `AdapterModel`.
        method: See `AdapterModel`.
        head: See `AdapterModel`.
        use_encoder_dropout: See `AdapterModel`.
        seed: See `AdapterModel`.
        below: See `AdapterModel`.
        remat: See `AdapterModel`.
        **kwargs: See `keras.Model`.
    """

    def __init__(
        self,
        encoder: Encoder,
        method: methods.Method,
        head: heads.Head | None = None,
        use_encoder_dropout: bool = True,
        seed: int | None = 0,
        below: Composition | methods.Method | None = None,
        remat: bool = False,
        **kwargs: Any,
    ) -> None:
        model_checks.check_arguments(encoder, method, head)
        model_checks.check_seed(seed)
        super().__init__(encoder, **kwargs)
        self.method = method
        # `None` in a model without a head.
        self.head: heads.Head | Any = head
        self.use_encoder_dropout = use_encoder_dropout
        # A NumPy integer would not fit into a stored configuration.
        self.seed = None if seed is None else int(seed)
        self.remat = remat
        # Blocks from which `leave_out` removed all slots.
        self.left_out: tuple[int, ...] = ()
        # The trained adapters of a fusion or a composition; see `Member`.
        self.members: tuple[Member, ...] = ()
        # The composition of frozen adapters below the method, or None.
        self.below = below
        self.encoder, own, self.slots_below = model_slots.adapted_encoder(
            self, encoder
        )
        # A function, because Keras would track a list as layers of the model.
        self._own_slots = lambda: own
        for slot in self.all_slots():
            check_names(slot)
        model_checks.check_slots_train(self)
        self.head_layer: keras.layers.Layer | Any = (
            None if head is None else self._make_head_layer(head)
        )
        model_checks.check_trained_floats(self)
        self.reparameterization = Reparameterization(
            model_checks.of_floats(self, method.reparameterize(self)),
            lambda: model_checks.foldable(method.folds(self)),
            name="reparameterization",
        )
        self.seed_generator = keras.random.SeedGenerator(self.seed)
        self._freeze()
        self.built = True

    def _freeze(self) -> None:
        """Freezes all variables but those that method and head declare."""
        self._freezing = freezing.Freezing(self)
        declared = self.declared_encoder_variables()
        self.may_change(declared)
        model_checks.check_trained_dtypes(self)
        if self.remat:
            self.encoder.rematerialize(
                [
                    *variable_groups.trained_additions(self),
                    *declared,
                    *self.reparameterization.computed(),
                ]
            )
        freezing.unfreeze_layers(self.encoder.backbone)
        freezing.freeze_all_but_declared(self)

    def fit(self, *args: Any, **kwargs: Any) -> keras.callbacks.History:
        """Trains the model; raises a `UserError` if no weights train."""
        model_checks.check_trains(self)
        return super().fit(*args, **kwargs)

    def _make_head_layer(self, head: heads.Head) -> keras.layers.Layer:
        layer = head.make_layer()
        layer.build((None, None, self.encoder.width))
        head.attach(layer, self.encoder)
        return layer

    @property
    def slots(self) -> list[dict[str, Slot]]:
        """One dict for each block, from place to slot."""
        return self.encoder.slots

    def all_slots(self) -> list[Slot]:
        """Returns the slots of embeddings and blocks, each only once."""
        return model_slots.distinct([self.encoder.embedding_slots, *self.slots])

    def own_slots(self) -> list[Slot]:
        """Returns the method's own slots, each only once.

        In a composition, a single slot at each place combines these with the
        slots of the adapters below.
        """
        return self._own_slots()

    def leave_out(self, blocks: Collection[int]) -> None:
        """Removes all slots from some blocks, for faster inference.

        The outputs of the model change slightly (AdapterDrop, Rueckle et al.
        2021, arXiv:2010.11918). `.keras` files and `save_adapter` save the
        model without these slots. Keras's `predict` and `evaluate` use the
        changed model. A `tf.function` of your own that was called before does
        not, because it keeps its old graph.

        Args:
            blocks: Indices of blocks. An empty list has no effect.

        Raises:
            UserError: If a block does not exist, the method adds nothing to
                blocks, or the model is folded.
        """
        model_slots.leave_out(self, blocks)

    def without(self, blocks: Collection[int]) -> AbstractContextManager[None]:
        """Context manager that calls `leave_out` and undoes it on exit."""
        return model_slots.without(self, blocks)

    def slot_weights(self, block: int, place: str) -> dict[str, keras.Variable]:
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

    def fold(self) -> None:
        """Folds the method's changes: adds them to the encoder's own weights.

        Such changes are the products `A B` of LoRA, for example, or the
        differences of diff pruning. The encoder then includes these changes at
        no extra cost. A folded model gives the same outputs, but you cannot
        train or save it until you call `unfold`.

        Raises:
            UserError: If another model has changed the encoder, a kernel is not
                float32, or blocks with different changes share a kernel.
        """
        self.check_encoder()
        model_checks.check_foldable(self, self.method.folds(self))
        written = {id(v): v for v in self.reparameterization.written()}
        kernels = [v for v in self.encoder.backbone.weights if id(v) in written]
        self.encoder_info.loaded.keep(kernels, self.encoder_user)
        self.encoder_info.loaded.hold(self.encoder_user)
        self.encoder_user.is_folded = True
        self.reparameterization.fold()
        self._forget_graphs()

    def unfold(self) -> None:
        """Undoes `fold` exactly.

        Raises:
            UserError: If another adapter of a `TextModel` is active. Call its
                `set_active` first.
        """
        if self.reparameterization.folded:
            self.check_encoder()
        self.reparameterization.unfold()
        self.encoder_user.is_folded = False
        self.encoder_info.loaded.release(self.encoder_user)
        self._forget_graphs()

    def check_not_folded(self) -> None:
        """Raises a `UserError` if the model is folded."""
        if self.reparameterization.folded:
            raise UserError(
                "The trained weights are folded into the encoder's, so they "
                "cannot be saved or trained, and adapters below them cannot "
                "be swapped. Call `unfold()` first."
            )

    def variable_groups(self) -> list[tuple[str, bool, list[keras.Variable]]]:
        """Returns a list of (group name, whether it trains, variables).

        Raises:
            UserError: If a variable belongs to no group.
        """
        return variable_groups.variable_groups(self)

    def encoder_variables_read(self) -> list[keras.Variable]:
        """Returns the encoder weights that affect this model's outputs."""
        variables = self.encoder.used_variables()
        if self.head is not None and self.head.reads != "pooled_output":
            pooler = {id(v) for v in self.encoder.pooler_variables()}
            variables = [v for v in variables if id(v) not in pooler]
        return variables

    def declared_encoder_variables(self) -> list[keras.Variable]:
        """Returns the encoder weights that the method trains."""
        read = {id(v) for v in self.encoder_variables_read()}
        declared = self.method.trainable_encoder_variables(self.encoder)
        return [v for v in declared if id(v) in read]

    def is_added(self, variable: keras.Variable) -> bool:
        """Returns whether a variable trains and is not part of the backbone."""
        return self._freezing.is_added(variable)

    def trained_variables(self) -> dict[str, keras.Variable]:
        """Returns all trained variables, in a dict from name to variable.

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
