"""Reads trained adapters from their folders, or from models in memory."""

from collections.abc import Sequence
import dataclasses
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.interop import hub_address
from tf_adapters.interop.stored_adapter import StoredAdapter
from tf_adapters.models import adapter_reading
from tf_adapters.models.adapted_encoder import AdaptedEncoder
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.model_checks import checked_encoder


@dataclasses.dataclass(frozen=True)
class Member:
    """One trained adapter, with its weights.

    Attributes:
        name: Name for display: the folder of the run that trained the adapter,
            with as many parent folders as needed to distinguish the name from
            those of other members.
        folder: The adapter folder, or `None` for a model in memory.
        method: The method that trained the adapter.
        head: The adapter's head, or `None`.
        tensors: Dict from name to array, as saved.
        fingerprint: SHA-256 of the weights file, or `None` for a model in
            memory.
        left_out: Indices of blocks whose slots were removed after training.
        is_stacked: Whether the adapter was trained on top of other adapters.
        address: The adapter's address on the Hugging Face Hub, or `None`. If
            there is one, `folder` is in the Hub's cache.
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
    def source(self) -> Path | str:
        """The name of this member in error messages."""
        return self.folder or f"The model `{self.name}`"

    @property
    def weights_source(self) -> Path | str:
        """The name of this member's weights in error messages."""
        if self.folder is None:
            return self.source
        return self.folder / adapter_folder.WEIGHTS_FILE


def read_members(
    adapters: Sequence[str | os.PathLike[str] | AdapterModel],
    encoder: Encoder,
    with_heads: Sequence[bool] | None = None,
) -> tuple[Member, ...]:
    """Returns the `Member`s of adapters, each with a unique name.

    Args:
        adapters: Paths of adapter folders or of runs that contain one, and
            `AdapterModel`s, which keep their own names.
        encoder: The `Encoder` of all adapters.
        with_heads: One boolean per adapter: whether to read its head. A head
            that is not read may be of a kind that this library does not have.
            Default: all heads are read.

    Raises:
        AdapterError: If there are no adapters, if an adapter is given twice or
            belongs to another encoder, or if a folder holds no adapter.
    """
    check_is_list(adapters)
    checked_encoder(encoder)
    check_is_any(adapters)
    with_heads = with_heads or [True] * len(adapters)
    members = [
        as_member(adapter, encoder, with_head)
        for adapter, with_head in zip(adapters, with_heads, strict=True)
    ]
    paths = list(map(_path_of, adapters, members))
    for path, member in zip(paths, members, strict=True):
        if paths.count(path) > 1:
            advice = "Name it once."
            if member.folder is None:
                advice = "Give models different names: `adapt(..., name=...)`."
            raise AdapterError(f"{cut(path)} is given twice. {advice}")
    names = _shortest_ends(paths)
    return tuple(
        dataclasses.replace(member, name=name)
        for member, name in zip(members, names, strict=True)
    )


def check_encoder_untrained(
    member: Member, encoder: Encoder, group: str, setting: str
) -> None:
    """Raises an `AdapterError` if a member trained weights of the encoder.

    Args:
        member: `Member`.
        encoder: The `Encoder` that all members share.
        group: Kind of group, such as `"fusion"`, for the error message.
        setting: Name of the setting that keeps Houlsby's norms frozen, for the
            error message.
    """
    if member.method.trainable_encoder_variables(AdaptedEncoder(encoder)):
        raise AdapterError(
            f"{member.source} trained weights of the encoder too, its layer "
            f"norms for example, which the members of a {group} share. Train a "
            f"houlsby with {setting}=false."
        )


def check_is_list(adapters: object) -> None:
    """Raises an `AdapterError` if a single adapter is given, not a list."""
    if isinstance(adapters, str | os.PathLike | AdapterModel):
        name = getattr(adapters, "name", adapters)
        raise AdapterError(
            "Expected a list of folders and models. Received: one, "
            f"{name!r:.100}. Put it in brackets: [...]."
        )


def check_is_any(adapters: Sequence[Any]) -> None:
    """Raises an `AdapterError` if there are no adapters."""
    if not adapters:
        raise AdapterError(
            "No trained adapters were given. Name their run folders with "
            "--adapters=runs/a,runs/b."
        )


def _path_of(
    adapter: str | os.PathLike[str] | AdapterModel, member: Member
) -> Path:
    """Returns the path from which a member's display name is made."""
    if hub_address.is_address(adapter):
        # Its folder in the Hub's cache is named after a commit.
        return Path(hub_address.name_of(adapter))
    return _run_folder(member.folder) if member.folder else Path(member.name)


def _run_folder(folder: Path) -> Path:
    return folder.parent if folder.name == "adapter" else folder


def _shortest_ends(paths: list[Path]) -> list[str]:
    """Returns a unique name for each path: its last folders.

    The names have the same number of folders, the smallest that makes them
    unique.
    """
    max_parts = max((len(path.parts) for path in paths), default=0)
    for number in range(1, max_parts + 1):
        names = ["/".join(path.parts[-number:]) for path in paths]
        if len(set(names)) == len(names):
            return names
    return []


def read_member(
    folder: StoredAdapter | str | os.PathLike[str],
    encoder: Encoder,
    with_head: bool = True,
) -> Member:
    """Returns the `Member` in an adapter folder or in a run's folder.

    Raises:
        AdapterError: If the folder holds no adapter, or if the adapter belongs
            to another encoder.
    """
    read = adapter_reading.read_adapter(folder, encoder, with_head)
    folder = read.stored.path.absolute()
    address = read.stored.address
    place = (
        Path(hub_address.name_of(address)) if address else _run_folder(folder)
    )
    return Member(
        name=place.name,
        folder=folder,
        method=read.method,
        head=read.head,
        tensors=read.tensors,
        fingerprint=adapter_folder.checksum(read.weights_file),
        left_out=tuple(read.config.get("left_out", ())),
        is_stacked=bool(read.config.get("below")),
        address=address,
    )


def as_member(
    adapter: str | os.PathLike[str] | AdapterModel | Member,
    encoder: Encoder,
    with_head: bool = True,
) -> Member:
    """Returns the adapter in a folder or in a model as a `Member`.

    A `Member` is returned unchanged.

    Raises:
        AdapterError: If there is no adapter, or if it belongs to another
            encoder.
    """
    if isinstance(adapter, Member):
        return adapter
    if isinstance(adapter, str | os.PathLike):
        return read_member(adapter, encoder, with_head)
    return member_of_model(adapter, encoder, with_head)


def member_of_model(
    model: AdapterModel, encoder: Encoder, with_head: bool = True
) -> Member:
    """Returns an `AdapterModel` in memory as a `Member`.

    Args:
        model: `AdapterModel`.
        encoder: The `Encoder` from which the model must have been made.
        with_head: Whether to include the model's head. Defaults to `True`.

    Raises:
        AdapterError: If `model` is not an `AdapterModel`, or has another
            encoder.
    """
    if not isinstance(model, AdapterModel):
        raise AdapterError(
            "Expected the folder of an adapter or a model that `adapt` or "
            "`load_adapter` returned; of a text model, give its "
            f"`adapter_model`. Received: {shown(model)}"
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
        tensors=model.method.gating.pack(tensors),
        fingerprint=None,
        left_out=model.left_out,
        is_stacked=model.below is not None,
    )
