"""Reads the members of a composition and checks their positions."""

from collections.abc import Collection
from collections.abc import Iterable
import dataclasses
import os
import re
from typing import Any

import numpy as np

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.methods.registry import parts_of
from tf_adapters.methods.union import without_map
from tf_adapters.models import composition as trees
from tf_adapters.models import trained_members
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.trained_members import Member


def read_composition(
    composition: trees.Composition | str | os.PathLike[str] | AdapterModel,
    encoder: Encoder,
    with_head: bool = False,
) -> trees.Composition | Member:
    """Reads the adapters of a composition, and returns it with `Member`s.

    Args:
        composition: Composition of folders and models.
        encoder: The `Encoder` of all adapters.
        with_head: Whether to read the last member's head. Other heads are
            never read. Defaults to `False`.

    Raises:
        UserError: If a member is missing, damaged, belongs to another encoder,
            trained weights that all members share, or cannot be used at its
            position.
    """
    trees.check_nesting(composition)
    adapters = trees.all_members(composition)
    with_heads = [*[False] * (len(adapters) - 1), with_head]
    members = trained_members.read_members(adapters, encoder, with_heads)
    for member in members:
        _check_member(member, encoder)
    tree = placed(composition, members, encoder)
    for member in trees.lowest(tree):
        _check_lowest(member)
    return tree


def _check_member(member: Member, encoder: Encoder) -> None:
    if member.method.adapters:
        raise AdapterError(
            f"{member.source} is a fusion, but a composition's members must be "
            "single adapters."
        )
    for part in parts_of(member.method):
        if isinstance(part, methods.DiffPruning):
            raise AdapterError(
                f"{member.source} changes the weights of the encoder (method "
                "diff_pruning), which the members of a composition share. Use "
                "adapters that add weights of their own."
            )
    trained_members.check_encoder_untrained(
        member, encoder, "composition", "method.train_layer_norms"
    )


def _check_lowest(member: Member) -> None:
    if member.is_stacked:
        raise AdapterError(
            f"{member.source} was trained on top of other adapters, but here "
            "nothing is below it. Put them below it: Stack(<those adapters>, "
            "<this one>). --stack_on takes a standalone adapter."
        )


def placed(
    composition: Any, members: Iterable[Member], encoder: Encoder
) -> trees.Composition | Member:
    """Returns a composition of members, adjusted to their positions.

    Members above others lose their invertible adapter. If a member was left out
    of some blocks after training, its method and weights no longer include
    those blocks.

    Args:
        composition: Composition with the structure of the result. Its own
            members are ignored.
        members: A `Member` for each position, in the order of `all_members`.
        encoder: The `Encoder` of all members.
    """
    num_blocks = encoder.backbone.num_layers
    members = (_without_left_out(member, num_blocks) for member in members)
    tree = trees.with_all_members(composition, members)
    lowest = {id(member) for member in trees.lowest(tree)}
    found = [
        member if id(member) in lowest else _without_map(member)
        for member in trees.all_members(tree)
    ]
    return trees.with_all_members(tree, iter(found))


def _without_map(member: Member) -> Member:
    """Returns a member without its invertible adapter, if it has one."""
    return dataclasses.replace(
        member,
        method=without_map(member.method),
        tensors={
            name: tensor
            for name, tensor in member.tensors.items()
            if not name.startswith("invertible/")
        },
    )


def _without_left_out(member: Member, num_blocks: int) -> Member:
    """Removes left-out blocks from a member's method and weights."""
    if not member.left_out:
        return member
    if "leave_out" not in {f.name for f in dataclasses.fields(member.method)}:
        raise AdapterError(
            f"{member.source} was left out of blocks {list(member.left_out)}, "
            f"which a {type(member.method).__name__} in a composition cannot "
            "be. Give the complete adapter."
        )
    blocks = tuple(sorted({*member.method.leave_out, *member.left_out}))
    return dataclasses.replace(
        member,
        method=dataclasses.replace(member.method, leave_out=blocks),
        tensors=_of_other_blocks(member.tensors, blocks, num_blocks),
        left_out=(),
    )


def _of_other_blocks(
    tensors: dict[str, np.ndarray], blocks: Collection[int], num_blocks: int
) -> dict[str, np.ndarray]:
    """Removes the tensors of the given blocks from an adapter's tensors.

    Weights that several blocks share are named after the first of these blocks.
    If that block is removed, they get the name of the first remaining block.
    """
    first = min(set(range(num_blocks)) - set(blocks), default=None)
    found = {}
    for name, tensor in tensors.items():
        part = re.match(r"block_(\d+)([^/]*/(shared_)?)", name)
        if part and int(part[1]) in blocks:
            if first is None or not part[3]:
                continue
            name = f"block_{first}{name[part.end(1) :]}"
        found[name] = tensor
    return found
