"""Checks that adapters can be fused with each other, and pads their weights."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.methods.support import bottleneck_slots
from tf_adapters.models.adapted_encoder import AdaptedEncoder

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.models.trained_members import Member


def describe_stack(
    members: Sequence[Member], encoder: Encoder
) -> dict[str, Any]:
    """Returns the settings of a `methods.Fusion` that its members determine.

    Args:
        members: List of `Member`.
        encoder: The `Encoder` of all members.

    Returns:
        Dict with `adapters`, `placement`, `units` (of the widest member),
        `activation` and `leave_out`, which are fields of `methods.Fusion`.

    Raises:
        AdapterError: If the members cannot be fused with each other (the
            message names the setting in which they differ), or if a member's
            weights do not match its configuration.
    """
    for member in members:
        check_stacks(member)
        _check_weights(member, encoder)
    units = [
        bottleneck_slots.width_of_bottleneck(
            member.method, encoder.backbone.hidden_dim
        )
        for member in members
    ]
    return {
        "adapters": tuple(member.name for member in members),
        "placement": common(members, "placement", lambda m: m.method.stacks_as),
        "units": max(units),
        "activation": common(
            members, "activation", lambda m: m.method.activation
        ),
        "leave_out": common(
            members,
            "left-out blocks",
            lambda m: tuple(sorted({*m.method.leave_out, *m.left_out})),
        ),
    }


def check_stacks(member: Member) -> None:
    """Raises an `AdapterError` unless a member can be part of a fusion.

    The member must be a bottleneck adapter, trained without others below it.
    """
    if member.method.stacks_as is None:
        names = [name for name, cls in methods.METHODS.items() if cls.stacks_as]
        raise AdapterError(
            f"{member.source} was trained with "
            f"`{methods.name_of(member.method)}`; only bottleneck adapters "
            f"({', '.join(names)}) share an encoder."
        )
    if member.is_stacked:
        raise AdapterError(
            f"{member.source} was trained on top of other adapters, which a "
            "bank or a fusion cannot hold. Load it alone, with "
            "`load_adapter`, or give standalone adapters."
        )


def _check_weights(member: Member, encoder: Encoder) -> None:
    """Raises an `AdapterError` if weights do not match a member's settings.

    Names and shapes must be those of the member's method and head.
    """
    adapted = AdaptedEncoder(encoder)
    slots = member.method.make_slots(methods.EncoderShape.of(encoder))
    layers = [slot for block in slots for slot in block.values()]
    if member.head is not None:
        layers.append(member.head.make_layer())
    for layer in layers:
        layer.build((None, None, adapted.width))
    variables = [
        *(variable for layer in layers for variable in layer.weights),
        *member.method.trainable_encoder_variables(adapted),
    ]
    adapter_folder.check_tensors(
        {variable.path: variable for variable in variables},
        member.tensors,
        member.weights_source,
    )


def common(
    members: Sequence[Member], what: str, of: Callable[[Member], Any]
) -> Any:
    """Returns the value of `of(member)`, which all members must share.

    Args:
        members: List of `Member`.
        what: Name of the value, for the error message.
        of: Function that returns the value of a member.

    Raises:
        AdapterError: If the values differ.
    """
    values = {of(member): member.source for member in members}
    if len(values) > 1:
        found = ", ".join(f"{v} ({source})" for v, source in values.items())
        raise AdapterError(
            f"Adapters on one encoder must agree in their {what}. Found: "
            f"{cut(found)}."
        )
    return next(iter(values))


def arrays(
    members: Sequence[Member], name: str, units: int, axis: int | None
) -> list[np.ndarray]:
    """Returns a list with one weight of each member, padded along `axis`.

    Args:
        members: List of `Member`.
        name: Name of the weight in the adapter folder.
        units: Integer. Size along `axis` after padding.
        axis: Axis of the bottleneck's units, or `None` for no padding.
    """
    found = [member.tensors[name] for member in members]
    if axis is None:
        return found
    return [_widened(array, units, axis) for array in found]


def _widened(array: np.ndarray, size: int, axis: int) -> np.ndarray:
    """Pads an array with zeros to `size` along `axis`."""
    padding = [(0, 0)] * array.ndim
    padding[axis] = (0, size - array.shape[axis])
    return np.pad(array, padding)
