"""Creates the slots of an `AdapterModel`, reads them and disables them."""

from __future__ import annotations

from collections.abc import Collection
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Sequence
import contextlib
from typing import TYPE_CHECKING

from tf_adapters import methods
from tf_adapters.common.checks import checked_integers
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.layers.slot import Slot
from tf_adapters.models import composed_placement
from tf_adapters.models.adapted_encoder import AdaptedEncoder

if TYPE_CHECKING:
    import keras

    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.models.assembled_model import AssembledModel


def adapted_encoder(
    model: AssembledModel, encoder: Encoder
) -> tuple[AdaptedEncoder, list[Slot], Sequence[list[Slot]]]:
    """Creates a model's slots and attaches them to the encoder.

    Args:
        model: `AdapterModel` whose attributes `method` and `below` are set.
        encoder: `Encoder`.

    Returns:
        `AdaptedEncoder`; a list of the method's own slots; and, for each frozen
        adapter of the composition, a list of its slots.
    """
    method = model.method
    shape = methods.EncoderShape.of(encoder)
    slots = method.make_slots(shape)
    embedding_slots = method.make_embedding_slots(shape)
    own, below = distinct([embedding_slots, *slots]), ()
    if model.below is not None:
        slots, embedding_slots, below = composed_placement.put_below(
            model.below, slots, embedding_slots, shape
        )
    adapted = AdaptedEncoder(
        encoder,
        slots,
        model.use_encoder_dropout,
        embedding_slots=embedding_slots,
        position_offset=method.position_offset,
        name="encoder",
    )
    return adapted, own, below


def distinct(places: Iterable[dict[str, Slot]]) -> list[Slot]:
    """Returns a list of the slots in several dicts, each slot only once."""
    slots = (slot for found in places for slot in found.values())
    return list({id(slot): slot for slot in slots}.values())


def weights_of_slot(
    slots: Sequence[dict[str, Slot]], block: int, place: str
) -> dict[str, keras.Variable]:
    """Returns the weights of the slot at a place, a dict from name to variable.

    See `AdapterModel.slot_weights`.
    """
    in_block = slots[block] if block in range(len(slots)) else {}
    if place not in in_block:
        filled = [
            f"block {i} {name}"
            for i, block_slots in enumerate(slots)
            for name in block_slots
        ]
        raise UserError(
            f"The method attaches nothing at `{place}` in block {block!r}. It "
            f"attaches something at: {', '.join(filled) or 'no block'}."
        )
    slot = in_block[place]
    return {v.path.removeprefix(f"{slot.name}/"): v for v in slot.weights}


def leave_out(model: AssembledModel, blocks: Collection[int]) -> None:
    """Disables a model's slots in the blocks with the given indices.

    See `AdapterModel.leave_out`.
    """
    blocks = checked_integers("blocks", blocks)
    _check_left_out(model, blocks)
    for block in blocks:
        # The variables remain part of the model, but are no longer used.
        model.encoder.blocks[block].places_in_use = ()
    model.left_out = tuple(sorted({*model.left_out, *blocks}))
    model._forget_graphs()


@contextlib.contextmanager
def without(model: AssembledModel, blocks: Collection[int]) -> Iterator[None]:
    """Context manager that disables a model's slots in the given blocks."""
    before = [block.places_in_use for block in model.encoder.blocks]
    left_out = model.left_out
    model.leave_out(blocks)
    try:
        yield
    finally:
        for block, places in zip(model.encoder.blocks, before, strict=True):
            block.places_in_use = places
        model.left_out = left_out
        model._forget_graphs()


def _check_left_out(model: AssembledModel, blocks: Collection[int]) -> None:
    """Raises a `UserError` if slots in the given blocks cannot be disabled."""
    if blocks and model.reparameterization.folded:
        raise UserError(
            "The trained weights are folded into the encoder's, so they "
            "cannot be left out. Call `unfold()` first."
        )
    if blocks and not any(model.slots):
        raise UserError(
            f"{type(model.method).__name__} adds nothing to the blocks, so "
            "there is nothing to leave out."
        )
    unknown = sorted(set(blocks) - set(range(len(model.slots))))
    if unknown:
        raise UserError(
            f"There are no blocks {cut(unknown)}: the encoder has blocks 0 to "
            f"{len(model.slots) - 1}."
        )
