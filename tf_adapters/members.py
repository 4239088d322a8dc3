"""Trained adapters read from their folders, to be stacked for a fusion."""

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np

from tf_adapters import adapter_files
from tf_adapters import methods
from tf_adapters.adapter_files import AdapterError
from tf_adapters.encoders import encoder_fingerprint
from tf_adapters.methods import bottlenecks
from tf_adapters.model import adapt


@dataclasses.dataclass(frozen=True)
class Member:
    """One trained adapter.

    Attributes:
        name: What people call it: the folder of its run.
        folder: Its adapter folder.
        method: The method that trained it.
        tensors: Dict from name to array, as saved.
        fingerprint: SHA-256 of its weights' file.
    """

    name: str
    folder: Path
    method: Any
    tensors: dict[str, np.ndarray]
    fingerprint: str


def fuse(encoder, method, head=None, **options):
    """Returns a model that fuses trained adapters.

    Args:
        encoder: `Encoder` that all members were trained on.
        method: `methods.Fusion` with the members' folders as `adapters`; its
            placement, width, activation and left-out blocks become theirs.
        head: See `AdapterModel`.
        **options: See `AdapterModel`.

    Raises:
        AdapterError: If a member is missing, damaged, of another encoder, or
            does not fit the others.
    """
    fingerprint = encoder_fingerprint(encoder)
    members = tuple(read(folder, fingerprint) for folder in method.adapters)
    facts = describe(members, encoder.backbone.hidden_dim)
    model = adapt(
        encoder, dataclasses.replace(method, **facts), head, **options
    )
    load_into(model, members)
    return model


def read(folder, fingerprint):
    """Returns the `Member` in an adapter folder, or in a run's `adapter`.

    Raises:
        AdapterError: If the folder holds no adapter, or one of another encoder.
    """
    folder = Path(folder).absolute()
    if not (folder / adapter_files.CONFIG_FILE).is_file():
        folder = folder / "adapter"
    config = adapter_files.read_config(folder)
    if config["encoder"]["fingerprint"] != fingerprint:
        raise AdapterError(
            f"{folder} was trained on encoder `{config['encoder']['name']}` "
            f"({config['encoder']['fingerprint'][:12]}), not on this one "
            f"({fingerprint[:12]}). The members of a fusion share one "
            "encoder."
        )
    weights = folder / adapter_files.WEIGHTS_FILE
    tensors = adapter_files.read_tensors(weights)
    return Member(
        name=(folder.parent if folder.name == "adapter" else folder).name,
        folder=folder,
        method=methods.from_config(config["method"]),
        tensors=tensors,
        fingerprint=hashlib.sha256(weights.read_bytes()).hexdigest(),
    )


def to_config(members):
    """Returns what an adapter folder records of its members."""
    return [
        {
            "name": member.name,
            "folder": str(member.folder),
            "fingerprint": member.fingerprint,
        }
        for member in members
    ]


def from_config(config, folders, fingerprint):
    """Returns the members that `to_config` recorded.

    Args:
        config: What `to_config` returned.
        folders: Where the members are now, or `None`.
        fingerprint: Fingerprint of their encoder.

    Raises:
        AdapterError: If one is missing or has other weights than recorded.
    """
    if folders is None:
        folders = [entry["folder"] for entry in config]
    if len(folders) != len(config):
        names = ", ".join(entry["name"] for entry in config) or "no adapters"
        raise AdapterError(
            f"Trained over {names}. Received: {len(folders)} folders."
        )
    members = []
    for entry, folder in zip(config, folders, strict=True):
        member = read(folder, fingerprint)
        if member.fingerprint != entry["fingerprint"]:
            raise AdapterError(
                f"{member.folder} has other weights than the adapter "
                f"`{entry['name']}` that the fusion was trained over. Give "
                "that one, or train the fusion again."
            )
        members.append(member)
    return tuple(members)


def describe(members, width):
    """Returns what a fusion of `members` must know: its shapes and formula.

    Args:
        members: List of `Member`.
        width: Width `d` of the encoder.

    Returns:
        Dict with `adapters`, `placement`, `units`, `activation` and
        `leave_out`, fields of `methods.Fusion`.

    Raises:
        AdapterError: If they cannot be stacked; says which differ in what.
    """
    if not members:
        raise AdapterError(
            "A fusion needs trained adapters: give their run folders with "
            "--adapters=runs/a,runs/b."
        )
    for member in members:
        _check(member)
    units = [
        bottlenecks.width_of_bottleneck(member.method, width)
        for member in members
    ]
    return {
        "adapters": tuple(member.name for member in members),
        "placement": _common(members, "placement", _placement),
        "units": max(units),
        "activation": _common(
            members, "activation", lambda m: m.method.activation
        ),
        "leave_out": _common(
            members, "left-out blocks", lambda m: m.method.leave_out
        ),
    }


def _placement(member):
    return methods.to_config(member.method)["name"]


def _check(member):
    kinds = (methods.Houlsby, methods.Pfeiffer)
    if not isinstance(member.method, kinds):
        raise AdapterError(
            f"{member.folder} was trained with `{_placement(member)}`; only "
            "bottleneck adapters (houlsby, pfeiffer) can be fused."
        )
    if getattr(member.method, "train_layer_norms", False):
        raise AdapterError(
            f"{member.folder} trained the encoder's layer norms too, which the "
            "members of a fusion share. Train it with "
            "--params_override=method.train_layer_norms=false."
        )


def _common(members, what, of):
    values = {of(member): member.folder for member in members}
    if len(values) > 1:
        found = ", ".join(f"{v} ({folder})" for v, folder in values.items())
        raise AdapterError(
            f"The members of a fusion must agree in their {what}. Found: "
            f"{found}."
        )
    return next(iter(values))


def load_into(model, members):
    """Assigns the members' weights to the fusions in a model's slots.

    Narrower members are padded with zero rows in the up-projection, so that
    the padded units add nothing.
    """
    model.members = members
    if not members:
        return
    for block in model.slots:
        for slot in block.values():
            _load_slot(slot, members)


def _load_slot(slot, members):
    fusion = slot.fusion

    def arrays(part):
        name = f"{slot.name}/delta/{part}"
        for member in members:
            if name not in member.tensors:
                raise AdapterError(f"{member.folder} has no weight `{name}`.")
            yield member.tensors[name]

    def stacked(part, axis):
        return np.concatenate(
            [_widened(array, fusion.units, axis) for array in arrays(part)],
            axis,
        )

    fusion.down_kernel.assign(stacked("down_kernel", 1))
    fusion.down_bias.assign(stacked("down_bias", 0))
    fusion.up_kernel.assign(stacked("up_kernel", 0))
    fusion.up_bias.assign(np.stack(list(arrays("up_bias"))))


def _widened(array, units, axis):
    padding = [(0, 0)] * array.ndim
    padding[axis] = (0, units - array.shape[axis])
    return np.pad(array, padding)
