"""Puts the slots of frozen adapters below those of the trained method."""

from collections.abc import Iterable
from collections.abc import Sequence

from tf_adapters.common.errors import UserError
from tf_adapters.layers import composed_slots
from tf_adapters.layers.slot import PROJECTIONS
from tf_adapters.layers.slot import Slot
from tf_adapters.methods.method import EncoderShape
from tf_adapters.methods.method import Method
from tf_adapters.models.composition import Average
from tf_adapters.models.composition import Composition


def put_below(
    tree: Composition | Method,
    blocks: list[dict[str, Slot]],
    embeddings: dict[str, Slot],
    shape: EncoderShape,
) -> tuple[list[dict[str, Slot]], dict[str, Slot], list[list[Slot]]]:
    """Returns a method's slots, with a composition's frozen slots below them.

    Args:
        tree: Methods of the frozen adapters: a `Composition`, or one method.
        blocks: Return value of `Method.make_slots`.
        embeddings: Return value of `Method.make_embedding_slots`.
        shape: `EncoderShape`.

    Returns:
        Slots of the blocks, slots of the embeddings, and for each method in
        `tree` a list of its own slots.
    """
    below, below_embeddings, own = _slots_of(tree, shape)
    _check_top(below_embeddings, embeddings)
    # Build the slots before they are combined. Their weights then have the same
    # names as in an adapter folder.
    for slots in (*blocks, embeddings):
        shape.build_slots(slots)
    blocks = [
        _stacked([lower, upper])
        for lower, upper in zip(below, blocks, strict=True)
    ]
    return blocks, {**below_embeddings, **embeddings}, own


def _check_top(below: dict[str, Slot], embeddings: dict[str, Slot]) -> None:
    """Raises a `UserError` if slots at the embeddings cannot be combined.

    `below` are the slots of the frozen adapters, `embeddings` the slots of the
    method on top.
    """
    if any(slot.inverse for slot in embeddings.values()):
        raise UserError(
            "In a Stack only the first member's invertible adapter maps the "
            "embeddings, so one in the method on top would not train. Use the "
            "method without an Invertible."
        )
    if set(below) & set(embeddings):
        raise _two_in(set(below) & set(embeddings))


def _two_in(places: Iterable[str]) -> UserError:
    return UserError(
        f"Two members of a Stack change the embeddings ({', '.join(places)}), "
        "but only one can: a prompt, for example, cannot be stacked on an "
        "invertible adapter. Leave one of the two out."
    )


def _slots_of(
    tree: Composition | Method, shape: EncoderShape
) -> tuple[list[dict[str, Slot]], dict[str, Slot], list[list[Slot]]]:
    if not isinstance(tree, Composition):
        return _frozen_slots(tree, shape)
    found = [_slots_of(member, shape) for member in tree.members]
    blocks, embeddings, own = zip(*found, strict=True)
    if isinstance(tree, Average):
        if any(embeddings):
            # The output layer of a masked language model could not invert the
            # mean of several transformations of the embeddings.
            raise UserError(
                "Adapters that change the embeddings, with an Invertible for "
                "example, cannot be averaged. Average adapters without it."
            )
        joined = [
            _averaged(dicts, tree.weights)
            for dicts in zip(*blocks, strict=True)
        ]
    else:
        # `placed` has removed all invertible adapters except the lowest one. A
        # plug-in method may still have other slots at the embeddings.
        if any(embeddings[1:]):
            raise _two_in(set().union(*embeddings))
        joined = [_stacked(dicts) for dicts in zip(*blocks, strict=True)]
    return joined, embeddings[0], [slots for member in own for slots in member]


def _frozen_slots(
    method: Method, shape: EncoderShape
) -> tuple[list[dict[str, Slot]], dict[str, Slot], list[list[Slot]]]:
    blocks = method.make_slots(shape)
    embeddings = method.make_embedding_slots(shape)
    slots = [s for places in (*blocks, embeddings) for s in places.values()]
    is_longer = any(slot.num_added_tokens for slot in slots)
    if "keys_and_values" in set().union(*blocks) or is_longer:
        raise UserError(
            f"A {type(method).__name__} changes the length of the text or of "
            "its keys, which a composition does not support."
        )
    for places in (*blocks, embeddings):
        shape.build_slots(places)
    for slot in slots:
        slot.trainable = False
    return blocks, embeddings, [slots]


def _stacked(dicts: Sequence[dict[str, Slot]]) -> dict[str, Slot]:
    for number, lower in enumerate(dicts):
        _check_below(lower, set().union(*dicts[number + 1 :]))
    joined = {}
    for place in _places(dicts):
        slots = [slots[place] for slots in dicts if place in slots]
        if len(slots) > 1 and place in PROJECTIONS:
            raise UserError(
                f"Two members of a Stack change the projection `{place}`. They "
                "cannot be stacked there; use an Average."
            )
        joined[place] = slots[0] if len(slots) == 1 else _stack_of(slots)
    return joined


def _check_below(lower: dict[str, Slot], upper_places: set[str]) -> None:
    """Raises a `UserError` if no member above a member would read its output.

    `lower` are the slots of the lower member. `upper_places` are the places at
    which the members above it have slots.
    """
    for sublayer in ("after_attention", "after_ffn"):
        behind = f"{sublayer}_norm"
        if behind in lower and {sublayer, behind} & upper_places:
            raise UserError(
                f"An adapter after the pretrained norm (`{behind}`) must be "
                "the last member of a Stack: a member above it would not read "
                'its output. Use pretrained_norm="after" or "both", or make '
                "it the last member."
            )


def _stack_of(slots: list[Slot]) -> composed_slots.StackSlot:
    return composed_slots.StackSlot(slots, name=f"{slots[-1].name}_stack")


def _averaged(
    dicts: Sequence[dict[str, Slot]], weights: Sequence[float]
) -> dict[str, Slot]:
    return {
        place: _average_of([d.get(place) for d in dicts], weights, place)
        for place in _places(dicts)
    }


def _average_of(
    slots: list[Slot | None], weights: Sequence[float], place: str
) -> composed_slots.AverageSlot:
    there = [(s, w) for s, w in zip(slots, weights, strict=True) if s]
    members, their_weights = zip(*there, strict=True)
    cls = composed_slots.AverageSlot
    if place in PROJECTIONS:
        cls = composed_slots.AverageOfProjections
    return cls(
        members,
        their_weights,
        # A member without a slot here passes its input through.
        sum(weights) - sum(their_weights),
        name=f"{members[0].name}_average",
    )


def _places(dicts: Sequence[dict[str, Slot]]) -> list[str]:
    return list(dict.fromkeys(place for slots in dicts for place in slots))
