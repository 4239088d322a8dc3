"""Makes models of a fusion, whose slots hold all its frozen members."""

from collections.abc import Collection
from collections.abc import Sequence
import dataclasses
import os
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.methods import Fusion
from tf_adapters.methods.fusion import FusionSlot
from tf_adapters.methods.support.bottleneck_slots import width_of_bottleneck
from tf_adapters.models import stacked_adapters
from tf_adapters.models import trained_members
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.trained_members import Member

# The largest plausible bottleneck width of a member that was removed.
_MAX_UNITS = 4096
_DAMAGED = (
    "Its adapter_config.json is damaged: copy it again from where it was "
    "trained."
)


def fuse(
    encoder: Encoder,
    method: methods.Fusion | None = None,
    head: heads.Head | None = None,
    adapters: Sequence[str | os.PathLike[str] | AdapterModel] | None = None,
    **options: Any,
) -> AdapterModel:
    """Returns a model that combines trained adapters by attention.

    Args:
        encoder: `Encoder` on which all members, the adapters to combine, were
            trained.
        method: `methods.Fusion` (default) with the members' folders as
            `adapters`. Its placement, width and activation are replaced by the
            members'. Blocks that the members leave out are left out, too.
        head: See `AdapterModel`.
        adapters: List of folders and of models in memory (`AdapterModel`). It
            replaces `method.adapters`. You can save a fusion only if all its
            members are folders.
        **options: See `AdapterModel`.

    Raises:
        AdapterError: If a member is missing, damaged, belongs to another
            encoder, or does not fit the others, or if `method` is not a fusion.

    Examples:
        >>> method = methods.Pfeiffer()
        >>> one = tf_adapters.adapt(encoder, method, head, name="one")
        >>> two = tf_adapters.adapt(encoder, method, head, name="two")
        >>> model = tf_adapters.fuse(encoder, head=head, adapters=[one, two])
        >>> tuple(model(features).shape)
        (2, 2)
    """
    method = Fusion() if method is None else method
    if not isinstance(method, Fusion):
        raise AdapterError(
            "Expected as `method` a `tf_adapters.methods.Fusion`. Received: "
            f"{shown(method)}. `tf_adapters.adapt` makes a model with one "
            "adapter; `fuse` combines several trained adapters."
        )
    adapters = method.adapters if adapters is None else adapters
    trained_members.check_is_list(adapters)
    members = trained_members.read_members(
        adapters, encoder, with_heads=[False] * len(adapters)
    )
    for member in members:
        stacked_adapters.check_stacks(member)
        setting = "--params_override=method.train_layer_norms"
        trained_members.check_encoder_untrained(
            member, encoder, "fusion", setting
        )
    facts = stacked_adapters.describe_stack(members, encoder)
    left_out = {*facts["leave_out"], *method.leave_out}
    facts["leave_out"] = tuple(sorted(left_out))
    model = AdapterModel(
        encoder, dataclasses.replace(method, **facts), head, **options
    )
    load_into(model, members)
    return model


def check_members(
    method: Any, members: Sequence[Member], encoder: Encoder
) -> None:
    """Raises an `AdapterError` if a stored method does not match its members.

    Args:
        method: `Fusion`, or a method without members.
        members: List of `Member`; empty for a method without members.
        encoder: The members' `Encoder`.

    Raises:
        AdapterError: If `members` and `method.adapters` have different lengths,
            or if the members' widths do not fit `method.units`.
    """
    for member in members:
        stacked_adapters.check_stacks(member)
    width = encoder.backbone.hidden_dim
    widths = [width_of_bottleneck(m.method, width) for m in members]
    names = method.adapters
    if len(names) != len(members):
        raise AdapterError(
            f"A fusion of {cut(', '.join(names) or 'nothing')} came with "
            f"{len(members)} members. {_DAMAGED}"
        )
    # A member that `pruned` removed may have been wider than the others.
    if members and not (
        max(widths) <= method.units <= max(*widths, _MAX_UNITS)
    ):
        raise AdapterError(
            f"A fusion of {method.units} units came with members of "
            f"{cut(widths)}. {_DAMAGED}"
        )


def load_into(model: AdapterModel, members: tuple[Member, ...]) -> None:
    """Assigns the members' weights to a model's `FusionSlot`s, if any."""
    model.members = members
    if not members:
        return
    for block in model.slots:
        for slot in block.values():
            _load_slot(slot, members)


def _load_slot(slot: FusionSlot, members: Sequence[Member]) -> None:
    fusion = slot.fusion

    def arrays(weight: str, axis: int | None = None) -> list[np.ndarray]:
        return stacked_adapters.arrays(
            members, f"{slot.name}/delta/{weight}", fusion.units, axis
        )

    fusion.down_kernel.assign(np.concatenate(arrays("down_kernel", 1), 1))
    fusion.down_bias.assign(np.concatenate(arrays("down_bias", 0), 0))
    # Rows of zeros: padded units add nothing to the output.
    fusion.up_kernel.assign(np.concatenate(arrays("up_kernel", 0), 0))
    fusion.up_bias.assign(np.stack(arrays("up_bias")))


def pruned(model: AdapterModel, names: Collection[str]) -> AdapterModel:
    """Returns a model of a trained fusion with only some of its members.

    Query, key and value are copied from the fusion. The softmax runs over the
    remaining members (AdapterFusion, section 8.2).

    Args:
        model: `AdapterModel` that `fuse` made.
        names: Names of the members to keep, in any order.

    Raises:
        UserError: If a name is unknown, or no names are given.
    """
    kept = [member for member in model.members if member.name in names]
    if not names or len(kept) < len(set(names)):
        raise UserError(
            "Expected one or more of "
            f"{cut(', '.join(member.name for member in model.members))}. "
            f"Received: {cut(', '.join(names) or 'none')}"
        )
    method = dataclasses.replace(
        model.method,
        adapters=tuple(member.name for member in kept),
        subset=None,
    )
    smaller = AdapterModel(
        model.encoder_info,
        method,
        model.head,
        use_encoder_dropout=model.use_encoder_dropout,
    )
    trained = model.trained_variables()
    for name, variable in smaller.trained_variables().items():
        variable.assign(trained[name])
    load_into(smaller, tuple(kept))
    smaller.leave_out(model.left_out)
    return smaller
