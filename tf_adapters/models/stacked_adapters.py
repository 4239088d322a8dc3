"""Reads trained adapters from their folders, to stack them on one encoder."""

import dataclasses
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.interop import hub_address
from tf_adapters.methods.support import bottleneck_slots
from tf_adapters.models import stored_parts
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel


@dataclasses.dataclass(frozen=True)
class Member:
    """One trained adapter.

    Attributes:
        name: Name for display: the folder of its run, with as many parent
            folders as needed to distinguish it from other members.
        folder: Its adapter folder, or `None` for a model in memory.
        method: The method that trained it.
        head: Its head, or `None`.
        tensors: Dict from name to array, as saved.
        fingerprint: SHA-256 of its weights file, or `None` for a model in
            memory.
        left_out: Indices of blocks that were left out after training.
        is_stacked: Whether it was trained on top of other adapters.
        address: Its Hub address, or `None`. `folder` is then in the Hub's
            cache.
    """

    name: str
    folder: Path | None
    method: Any
    head: Any
    tensors: dict[str, np.ndarray]
    fingerprint: str | None
    left_out: tuple[int, ...] = ()
    is_stacked: bool = False
    address: str | None = None

    @property
    def source(self):
        """What error messages call this member."""
        return self.folder or f"The model `{self.name}`"


def read_members(adapters, encoder, with_heads=None):
    """Returns the `Member`s of adapters, each with a unique name.

    Args:
        adapters: Paths of adapter folders or of runs that contain one, and
            `AdapterModel`s, which keep their own names.
        encoder: Their `Encoder`.
        with_heads: List of booleans, whether to read each adapter's head. A
            head that is not read may be of a kind that this library does not
            have. Default: all are read.

    Raises:
        AdapterError: If an adapter is given twice, belongs to another encoder,
            or its folder holds no adapter.
    """
    check_is_list(adapters)
    with_heads = with_heads or [True] * len(adapters)
    members = [
        read_member(adapter, encoder, with_head)
        if isinstance(adapter, str | Path)
        else member_of_model(adapter, encoder, with_head)
        for adapter, with_head in zip(adapters, with_heads, strict=True)
    ]
    paths = list(map(_path_of, adapters, members))
    for path in paths:
        if paths.count(path) > 1:
            raise AdapterError(f"{cut(path)} is given twice. Name it once.")
    names = _shortest_ends(paths)
    return tuple(
        dataclasses.replace(member, name=name)
        for member, name in zip(members, names, strict=True)
    )


def check_is_list(adapters):
    """Raises an `AdapterError` if a single adapter is given, not a list."""
    if isinstance(adapters, str | Path | AdapterModel):
        name = getattr(adapters, "name", adapters)
        raise AdapterError(
            "Expected a list of folders and models. Received: one, "
            f"{name!r:.100}. Put it in brackets: [...]."
        )


def _path_of(adapter, member):
    """Returns the source of a member's name: address, folder, or name."""
    if hub_address.is_address(adapter):
        # Its folder in the Hub's cache is named after a commit.
        return Path(hub_address.name_of(adapter))
    return _run_folder(member.folder) if member.folder else Path(member.name)


def _run_folder(folder):
    return folder.parent if folder.name == "adapter" else folder


def _shortest_ends(paths):
    """Returns the shortest path endings that are unique."""
    max_parts = max((len(path.parts) for path in paths), default=0)
    for number in range(1, max_parts + 1):
        names = ["/".join(path.parts[-number:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return []


def read_member(folder, encoder, with_head=True):
    """Returns the `Member` in an adapter folder, or in a run's `adapter`.

    Raises:
        AdapterError: If the folder holds no adapter, or one of another encoder.
    """
    read = stored_parts.read_adapter(folder, encoder, with_head)
    folder = read.stored.path.absolute()
    return Member(
        name=_run_folder(folder).name,
        folder=folder,
        method=read.method,
        head=read.head,
        tensors=read.tensors,
        fingerprint=adapter_folder.checksum(read.weights_file),
        left_out=tuple(read.config.get("left_out", ())),
        is_stacked=bool(read.config.get("below")),
        address=read.stored.address,
    )


def member_of_model(model, encoder, with_head=True):
    """Returns an `AdapterModel` in memory as a `Member`.

    Args:
        model: `AdapterModel`.
        encoder: The `Encoder` that it must have been made from.
        with_head: Whether to include its head. Defaults to `True`.

    Raises:
        AdapterError: If `model` is not an `AdapterModel`, or has another
            encoder.
    """
    if not isinstance(model, AdapterModel):
        raise AdapterError(
            "Expected the folder of an adapter or a model that `adapt` or "
            f"`load_adapter` returned. Received: {shown(model)}"
        )
    if model.encoder_info.fingerprint != encoder.fingerprint:
        raise AdapterError(
            f"The model `{model.name}` was made with encoder "
            f"`{model.encoder_info.name}` with fingerprint "
            f"{model.encoder_info.fingerprint[:12]}, and `{encoder.name}` as "
            f"given has {encoder.fingerprint[:12]}. Give the same encoder."
        )
    tensors = {
        name: keras.ops.convert_to_numpy(variable)
        for name, variable in model.trained_variables().items()
        if with_head or not name.startswith("head/")
    }
    return Member(
        name=model.name,
        folder=None,
        method=model.method,
        head=model.head if with_head else None,
        tensors=model.method.pack(tensors),
        fingerprint=None,
        left_out=model.left_out,
        is_stacked=model.below is not None,
    )


def describe_stack(members, encoder):
    """Returns the placement, width and other settings that members share.

    Args:
        members: List of `Member`.
        encoder: The `Encoder` that they share.

    Returns:
        Dict with `adapters`, `placement`, `units` (the largest), `activation`
        and `leave_out`, which are fields of `methods.Fusion`.

    Raises:
        AdapterError: If the members cannot be stacked, with the setting in
            which they differ, or if a member's weights do not match its
            configuration.
    """
    if not members:
        raise AdapterError(
            "No trained adapters were given. Name their run folders with "
            "--adapters=runs/a,runs/b."
        )
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


def check_stacks(member):
    """Raises an `AdapterError` if a member cannot share an encoder."""
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


def _check_weights(member, encoder):
    """Raises an error if a member's weights do not fit its configuration."""
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
        member.folder and member.folder / adapter_folder.WEIGHTS_FILE,
    )


def common(members, what, of):
    """Returns a value that must be equal for all members.

    Args:
        members: List of `Member`.
        what: Name of the value, for the error.
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


def arrays(members, name, units, axis):
    """Returns one array per member, padded to `units` along `axis`.

    Args:
        members: List of `Member`.
        name: Name of the weight in the adapter folder.
        units: Integer.
        axis: Axis of the bottleneck's units, or `None` for no padding.
    """
    found = [member.tensors[name] for member in members]
    if axis is None:
        return found
    return [widened(array, units, axis) for array in found]


def widened(array, size, axis, value=0.0):
    """Pads an array to `size` along `axis`, with zeros by default."""
    padding = [(0, 0)] * array.ndim
    padding[axis] = (0, size - array.shape[axis])
    return np.pad(array, padding, constant_values=value)
