"""Splits a trained adapter's weights into the `Part`s that a bank stores."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.layers.banks.bank_layer import Kind
from tf_adapters.layers.banks.bank_layer import Part
from tf_adapters.layers.reparameterization import stored_name
from tf_adapters.models import bank_encoder_parts
from tf_adapters.models.adapted_encoder import AdaptedEncoder

if TYPE_CHECKING:
    from collections.abc import Iterator

    import keras

    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.layers.slot import Slot
    from tf_adapters.models.trained_members import Member


@dataclasses.dataclass(frozen=True)
class Place:
    """A position in a model at which a bank holds one kind of weights.

    Attributes:
        name: A place of `tf_adapters.layers.slot`, or `"norm"`, `"pooler"` or
            `"head"`.
        index: Index of the block; of a `"norm"`, its index in
            `AdaptedEncoder.norms()`; otherwise 0.
        kind: The `Kind` of the weights.
    """

    name: str
    index: int
    kind: Kind


class PartReader:
    """Converts trained adapters to the weights that a bank stores.

    Args:
        encoder: The `Encoder` of all adapters.
    """

    def __init__(self, encoder: Encoder) -> None:
        self.encoder = encoder
        self.adapted = AdaptedEncoder(encoder)
        self.shape = methods.EncoderShape.of(encoder)
        # Cached: adapters with equal methods have equal slots, and it takes
        # long to make slots.
        self._slots_of = functools.lru_cache(maxsize=8)(self._make_slots)

    def _make_slots(self, method: methods.Method) -> _MethodSlots:
        return _MethodSlots(method, self.shape)

    def read(self, member: Member) -> dict[Place, dict[str, np.ndarray]]:
        """Returns an adapter's weights: for each `Place`, a dict of arrays.

        Raises:
            AdapterError: If a bank cannot hold the adapter, or if its weights
                do not match its configuration.
        """
        self._check(member)
        slots = self._slots_of(member.method)
        head_layer = member.head.make_layer()
        head_layer.build((None, None, self.shape.width))
        own = [*slots.weights(), *head_layer.weights]
        values = self._assign(member, own, self._trained_in_encoder(member))
        try:
            parts = [
                *slots.parts(member.left_out),
                *bank_encoder_parts.parts(self.adapted, values),
            ]
        except UserError as error:
            raise _refusal(member, error) from None
        parts += _head_parts(member, head_layer)
        return {
            Place(name, index, part.kind): part.arrays
            for name, index, part in parts
        }

    def _check(self, member: Member) -> None:
        if member.head is None:
            raise AdapterError(
                f"{member.source} has no head, so a bank could not answer "
                "with it."
            )
        if member.is_stacked:
            raise AdapterError(
                f"{member.source} was trained on top of other adapters, which "
                "a bank cannot hold. Load it alone, with `load_adapter`."
            )
        if member.method.not_in_bank:
            raise _refusal(member, member.method.not_in_bank)
        if member.method.position_offset:
            raise _refusal(member, "It shifts the positions of the text.")

    def _trained_in_encoder(self, member: Member) -> list[keras.Variable]:
        """Returns the encoder's variables that a member trained.

        If the member's head does not read the pooled output, the pooler's
        variables are left out.
        """
        found = member.method.trainable_encoder_variables(self.adapted)
        if member.head.reads == "pooled_output":
            return found
        pooler = {id(v) for v in self.adapted.pooler_variables()}
        return [v for v in found if id(v) not in pooler]

    def _assign(
        self,
        member: Member,
        own: list[keras.Variable],
        trained: list[keras.Variable],
    ) -> dict[int, np.ndarray]:
        """Assigns a member's weights to the slots and the head layer.

        Args:
            member: `Member`.
            own: Variables of the slots and the head layer.
            trained: Variables of the encoder that the member trained. They are
                not changed.

        Returns:
            Dict from the id of each variable in `trained` to its trained value.
        """
        variables = {stored_name(v): v for v in [*own, *trained]}
        shapes = {name: tuple(v.shape) for name, v in variables.items()}
        source = member.weights_source
        try:
            tensors = member.method.gating.unpack(member.tensors, shapes)
        except UserError as error:
            raise AdapterError(f"{source} does not fit. {error}") from error
        adapter_folder.check_tensors(variables, tensors, source)
        for variable in own:
            variable.assign(tensors[stored_name(variable)])
        return {id(v): tensors[stored_name(v)] for v in trained}


class _MethodSlots:
    """The slots of a method, built, but not attached to an encoder."""

    def __init__(
        self, method: methods.Method, shape: methods.EncoderShape
    ) -> None:
        self.slots = method.make_slots(shape)
        self.embedding_slots = method.make_embedding_slots(shape)
        for slots in [*self.slots, self.embedding_slots]:
            shape.build_slots(slots)

    def weights(self) -> list[keras.Variable]:
        """Returns the variables of all slots, each only once."""
        found = (v for _, _, slot in self._all_slots() for v in slot.weights)
        return list({id(variable): variable for variable in found}.values())

    def parts(
        self, left_out: tuple[int, ...]
    ) -> Iterator[tuple[str, int, Part]]:
        """Yields (place name, block index, `Part`) for each `Part` of a slot.

        The slots of the blocks in `left_out` are skipped.
        """
        for name, index, slot in self._all_slots():
            if name in self.embedding_slots or index not in left_out:
                for part in slot.bank_parts():
                    yield name, index, part

    def _all_slots(self) -> Iterator[tuple[str, int, Slot]]:
        for name, slot in self.embedding_slots.items():
            yield name, 0, slot
        for index, slots in enumerate(self.slots):
            for name, slot in slots.items():
                yield name, index, slot


def _head_parts(
    member: Member, layer: keras.layers.Layer
) -> list[tuple[str, int, Part]]:
    try:
        return [("head", 0, part) for part in member.head.bank_parts(layer)]
    except UserError as error:
        kind = heads.name_of(member.head)
        raise AdapterError(
            f"The head of {member.source} is a {kind}, and a bank cannot hold "
            f"it. {error} Load it alone, with `load_adapter`, or export it "
            "alone, with --mode=export --model_dir=<its run>."
        ) from None


def _refusal(member: Member, reason: object) -> AdapterError:
    name = methods.name_of(member.method)
    return AdapterError(
        f"{member.source} was trained with `{cut(name)}`, and a bank cannot "
        f"hold it. {reason} Load it alone, with `load_adapter`."
    )
