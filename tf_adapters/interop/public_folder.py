"""Prepares an adapter folder's files for upload, without local paths.

An adapter folder has the absolute paths of its encoder and its members, so
that it can be loaded again. These paths are useless on other machines and
disclose folders and users of this one. In uploaded files, they are replaced by
names.
"""

from collections.abc import Callable
import json
import os
from pathlib import Path
import re
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop import hub_address
from tf_adapters.interop import public_names
from tf_adapters.interop.formats import SETUP_FILE
from tf_adapters.interop.formats import read_json

CARD = "README.md"
# The files of an adapter. Other files next to them, such as a trainer's
# arguments, are not uploaded.
FILES = {
    CARD,
    SETUP_FILE,
    adapter_folder.CONFIG_FILE,
    adapter_folder.WEIGHTS_FILE,
    "adapter_fusion_config.json",
    "adapter_interface.json",
    "adapter_model.bin",
    "adapter_model.safetensors",
    "head_config.json",
    "model_adapter_fusion.safetensors",
    "model_head.safetensors",
    "pytorch_adapter.bin",
    "pytorch_model_adapter_fusion.bin",
    "pytorch_model_head.bin",
}
# Keys under which other libraries store a path, or an id on the Hub.
_IDS = {"base_model_name_or_path", "model_name", "tokenizer_name_or_path"}
# Values under these keys are plain text, even if they look like paths.
_TEXTS = {"id2label", "labels", "prompt_tuning_init_text"}
_MERGED_FROM = "merged_from"
_ABSOLUTE = re.compile(r"(/|~/|file://|[A-Za-z]:[\\/]|\\\\)[^\n]*")


def public_files(folder: str | os.PathLike[str]) -> dict[str, Path | bytes]:
    """Returns the files to upload for an adapter folder.

    Args:
        folder: Path of an adapter folder of any format.

    Returns:
        Dict from a file's name, relative to the folder, to its path, or to its
        new content in bytes if local paths in it were replaced.

    Raises:
        AdapterError: If a configuration is damaged, or a file is a link to one
            outside of the folder.
    """
    folder, replaced = Path(folder), {}
    paths = {
        path.relative_to(folder).as_posix(): path
        for own in [folder, *_folders_within(folder)]
        for path in sorted(own.iterdir())
        if path.name in FILES and path.is_file()
    }
    for path in paths.values():
        _check_is_within(path, folder)
    found = {
        name: _public_json(path, replaced) if path.suffix == ".json" else path
        for name, path in paths.items()
    }
    for name, path in paths.items():
        if path.name == CARD:
            found[name] = _public_card(path, replaced)
    return found


def _folders_within(folder: Path) -> list[Path]:
    """Returns the subfolders with the adapters, fusions and heads of a setup.

    Other subfolders, such as a trainer's checkpoints, can have adapters that
    nobody asked to upload.

    Args:
        folder: Path of an adapter folder. If it is not a setup, the list is
            empty.
    """
    path = folder / SETUP_FILE
    if not path.is_file():
        return []
    setup = read_json(path)
    names = _names([setup.get("adapter_setup"), setup.get("head_setup")])
    # A fusion's folder has the names of its members, separated by commas.
    return [
        one
        for one in sorted(folder.iterdir())
        if one.is_dir() and names.issuperset(one.name.split(","))
    ]


def _names(value: Any) -> set[str]:
    """Returns the names in a part of a setup, recursively."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, dict):
        value = [one for key, one in value.items() if key != "type"]
    inner = value if isinstance(value, list) else []
    return {name for one in inner for name in _names(one)}


def _check_is_within(path: Path, folder: Path) -> None:
    """Raises an `AdapterError` for a link that leads out of an adapter folder.

    A stranger's folder could have a link to a private file of this machine. In
    the Hub's cache all files are links, from `snapshots/REVISION` to `blobs`.
    """
    real, root = path.resolve(), folder.resolve()
    is_cache = root.parent.name == "snapshots"
    blobs = root.parent.parent / "blobs"
    if real.is_relative_to(root) or (is_cache and real.parent == blobs):
        return
    raise AdapterError(
        f"{path} is a link to {real}, outside of the adapter folder, and is "
        "not uploaded. Replace it by a copy if others may read it."
    )


def local_members(folder: str | os.PathLike[str]) -> list[str]:
    """Returns the names of a fusion's members that are not on the Hub."""
    path = Path(folder) / adapter_folder.CONFIG_FILE
    config = read_json(path) if path.is_file() else {}
    return [
        member["name"]
        for member in config.get("members", [])
        if not hub_address.is_address(member["folder"])
    ]


def _public_json(path: Path, replaced: dict[str, str]) -> Path | bytes:
    """Replaces the local paths in the content of a JSON file by names.

    Returns the new content, or the file's path if there is nothing to replace.

    Args:
        path: Path of the JSON file.
        replaced: Dict from each replaced path to its name. New replacements
            are added to it.
    """
    config = read_json(path)
    public = _without_places(config, replaced)
    public = _public(public, "", replaced)
    if public == config:
        return path
    return f"{json.dumps(public, indent=2)}\n".encode()


def _without_places(
    config: dict[str, Any], replaced: dict[str, str]
) -> dict[str, Any]:
    """Replaces the paths of the encoder and of members by their names.

    Configurations of other libraries are returned unchanged. Each replacement
    is added to `replaced`, a dict from path to name.
    """
    if "format_version" not in config:
        return config
    encoder = {k: v for k, v in config["encoder"].items() if k != "relative"}
    encoder["name"] = _replace(
        encoder["name"], public_names.public_name, replaced
    )
    members = []
    for member in config.get("members", []):
        member = {k: v for k, v in member.items() if k != "relative"}
        if not hub_address.is_address(member["folder"]):
            replaced[member["folder"]] = member["name"]
            member["folder"] = member["name"]
        members.append(member)
    config = {**config, "encoder": encoder}
    return {**config, "members": members} if "members" in config else config


def _public(value: Any, key: str, replaced: dict[str, str]) -> Any:
    """Replaces local paths in a value from a configuration, recursively.

    `key` is the key under which the value is stored. Each replacement is added
    to `replaced`, a dict from path to name.
    """
    if key in _TEXTS:
        return value
    if isinstance(value, dict):
        return {
            k: _public(v, _key_within(key, k), replaced)
            for k, v in value.items()
        }
    if isinstance(value, list):
        return [_public(one, key, replaced) for one in value]
    if not isinstance(value, str):
        return value
    if key in _IDS:
        return _replace(value, public_names.public_id, replaced)
    if key == _MERGED_FROM or _ABSOLUTE.fullmatch(value):
        return _replace(value, public_names.public_name, replaced)
    return value


def _key_within(outer: str, key: str) -> str:
    # A merged adapter lists the runs from which it was merged.
    is_run = outer == "merged" and key in ("adapters", "head_of")
    return _MERGED_FROM if is_run else key


def _replace(
    value: str, function: Callable[[str], str], replaced: dict[str, str]
) -> str:
    public = function(value)
    if public != value:
        replaced[value] = public
    return public


def _public_card(path: Path, replaced: dict[str, str]) -> Path | bytes:
    """Returns a model card's content with paths replaced by names.

    Returns the card's path if there is nothing to replace.
    """
    text = content = path.read_bytes()
    # Longest first, because one path can be within another.
    for place in sorted(replaced, key=len, reverse=True):
        text = text.replace(place.encode(), replaced[place].encode())
    return path if text == content else text
