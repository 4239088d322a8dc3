"""Records the members of an adapter in its folder, and finds them again.

Members are the other adapters that an adapter needs: those that a fusion
combines, or those below it in a composition.
"""

from collections.abc import Sequence
import dataclasses
import os
from typing import Any

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.interop import hub
from tf_adapters.interop import hub_address
from tf_adapters.interop import stored_adapter
from tf_adapters.interop.stored_adapter import StoredAdapter
from tf_adapters.models import trained_members
from tf_adapters.models.trained_members import Member


def members_to_config(members: Sequence[Member]) -> list[dict[str, Any]]:
    """Returns a list of dicts with each member's name, folder and fingerprint.

    The list is stored in `adapter_config.json`.

    Raises:
        AdapterError: If a member is not saved in a folder.
    """
    for member in members:
        if member.folder is None:
            raise AdapterError(
                f"The member `{member.name}` is a model in memory, but an "
                "adapter folder stores the folders of its members. Save it "
                "with `save_adapter` and give its folder."
            )
    return [
        {
            "name": member.name,
            "folder": member.address or str(member.folder),
            "fingerprint": member.fingerprint,
        }
        for member in members
    ]


def members_from_config(
    config: list[dict[str, Any]],
    folders: Sequence[str | os.PathLike[str]] | None,
    encoder: Encoder,
) -> tuple[Member, ...]:
    """Returns the members that `members_to_config` recorded.

    Members recorded with a Hub address are read from the Hub's cache and never
    downloaded, because the author of a configuration must not decide what is
    downloaded here. Addresses in `folders` are downloaded.

    Args:
        config: Return value of `members_to_config`.
        folders: Current folders of the members, or `None` if they have not
            moved.
        encoder: The members' `Encoder`, freshly loaded.

    Raises:
        AdapterError: If a member is missing or its weights have changed.
    """
    trained_members.check_is_list(folders)
    if folders is not None and len(folders) != len(config):
        names = ", ".join(entry["name"] for entry in config) or "no adapters"
        raise AdapterError(
            f"Trained over {cut(names)}. Received: {len(folders)} folders."
        )
    if not config:
        return ()
    found = [
        _find_member(entry, folder)
        for entry, folder in zip(
            config, folders or [None] * len(config), strict=True
        )
    ]
    return tuple(
        _read_recorded(entry, folder, encoder)
        for entry, folder in zip(config, _all_found(config, found), strict=True)
    )


def _find_member(
    entry: dict[str, Any], folder: str | os.PathLike[str] | None
) -> StoredAdapter | None:
    """Returns the `StoredAdapter` of a recorded member, or `None` if missing.

    Args:
        entry: The member's entry in the configuration.
        folder: The member's current folder, or `None`. It may be outdated if
            it comes from a run's own configuration.
    """
    if folder is not None:
        stored = stored_adapter.find_stored(folder)
        if stored.path.is_dir():
            return stored
    recorded = entry["folder"]
    if hub_address.is_address(recorded):
        cached = hub.find_cached(recorded)
        return stored_adapter.find_stored(cached) if cached else None
    stored = stored_adapter.find_stored(recorded)
    return stored if stored.path.is_dir() else None


def _all_found(
    config: list[dict[str, Any]], found: list[StoredAdapter | None]
) -> list[StoredAdapter]:
    """Returns `found`; raises an `AdapterError` if an element is `None`.

    Args:
        config: List with the recorded entry of each member.
        found: List with the `StoredAdapter` of each member, or `None`.
    """
    there = [folder for folder in found if folder]
    if len(there) == len(found):
        return there
    missing = [e for e, folder in zip(config, found, strict=True) if not folder]
    folders = [entry["folder"] for entry in config]
    addresses = [e["folder"] for e in missing if _is_remote(e)]
    if addresses:
        raise AdapterError(
            f"This adapter depends on {cut(', '.join(addresses))}, which the "
            "Hub's cache does not have. Nothing was downloaded. If you trust "
            "them, name all adapters that it depends on: "
            f"adapters={cut(folders)}, or --adapters={cut(','.join(folders))}"
        )
    raise AdapterError(
        f"The adapter `{cut(missing[0]['name'])}` is no longer in "
        f"{cut(missing[0]['folder'])}. Give the folders of all its members, in "
        f"the order {cut(', '.join(e['name'] for e in config))}: "
        "--adapters=runs/a,runs/b"
    )


def _is_remote(entry: dict[str, Any]) -> bool:
    return hub_address.is_address(entry["folder"])


def _read_recorded(
    entry: dict[str, Any], folder: StoredAdapter, encoder: Encoder
) -> Member:
    member = trained_members.read_member(folder, encoder, with_head=False)
    if member.fingerprint != entry["fingerprint"]:
        raise AdapterError(
            f"{member.folder} has other weights than the adapter "
            f"`{cut(entry['name'])}` that this one was trained with. Give "
            "that one, or train this one again."
        )
    address = entry["folder"] if _is_remote(entry) else None
    # Keep the recorded name, even if the member has moved.
    return dataclasses.replace(
        member, name=entry["name"], address=member.address or address
    )
