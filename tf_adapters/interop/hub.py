"""Adapter folders on the Hugging Face Hub, down and up."""

import os
from pathlib import Path
import re

from tf_adapters.common import network
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut

_FILES = ("*.json", "*.safetensors", "*.bin", "README.md")


def parse_address(address):
    """Returns repository and revision of `hf://owner/name@revision`.

    Args:
        address: Text; without `@revision` that is `None`, the newest.

    Raises:
        AdapterError: If it is no such address.
    """
    found = re.fullmatch(
        r"hf://([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", str(address)
    )
    if not found:
        raise AdapterError(
            f"`{cut(address)}` is no address of an adapter. Expected "
            "hf://owner/name, or hf://owner/name@revision."
        )
    return found[1], found[2]


def name_of(address):
    """Returns what an adapter at an address is called: `owner/name@revision`.

    Without dots, which names in AdapterHub's folders cannot have.
    """
    repository, revision = parse_address(address)
    at = f"@{revision.replace('/', '-')}" if revision else ""
    return f"{repository}{at}".replace(".", "_")


def is_address(folder):
    """Returns whether this is an address on the Hub, and no path."""
    return str(folder).startswith("hf://")


def pull(address, folder=None):
    """Returns the local folder of an adapter on the Hub.

    Args:
        address: `hf://owner/name`, or `hf://owner/name@revision`.
        folder: Where to put it. Default: the Hub's own cache.

    Raises:
        AdapterError: If it neither lies in the cache nor can be downloaded.
    """
    # Here, not above: only addresses need it, and it takes a second.
    import huggingface_hub

    repository, revision = parse_address(address)
    online = network.answers(_endpoint())
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository,
                revision=revision,
                allow_patterns=_FILES,
                local_dir=folder,
                local_files_only=not online,
            )
        )
    # The library's errors have no class in common.
    except Exception as error:
        raise _refusal(address, online, error) from error


def push(folder, address, private=False):
    """Uploads an adapter folder, and makes its repository if there is none.

    Args:
        folder: Path of an adapter folder of any format.
        address: `hf://owner/name`, with `@branch` perhaps.
        private: Whether a new repository is private. Defaults to `False`.

    Returns:
        The commit's address in the web.

    Raises:
        AdapterError: If the folder holds no adapter, nobody is logged in, or
            the Hub does not answer.
    """
    import huggingface_hub

    if (
        not (Path(folder) / "adapter_config.json").is_file()
        and not (Path(folder) / "adapter_setup.json").is_file()
    ):
        raise AdapterError(f"{folder} is no adapter folder.")
    repository, revision = parse_address(address)
    online = network.answers(_endpoint())
    try:
        api = huggingface_hub.HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        commit = api.upload_folder(
            repo_id=repository,
            folder_path=folder,
            revision=revision,
            allow_patterns=_FILES,
            commit_message="Adapter of tf_adapters",
        )
    except Exception as error:
        raise _refusal(address, online, error) from error
    return commit.commit_url


def _endpoint():
    return os.environ.get("HF_ENDPOINT", "https://huggingface.co")


def _refusal(address, online, error):
    if not online:
        return AdapterError(
            f"{_endpoint()} does not answer, and {cut(address)} is not on this "
            "machine. Try again with a network, or give a folder."
        )
    if getattr(getattr(error, "response", None), "status_code", 0) == 401:
        return AdapterError(
            f"{_endpoint()} does not let you at {cut(address)}: log in with "
            "`hf auth login`, or check the name."
        )
    return AdapterError(f"{_endpoint()} refused {cut(address)}: {cut(error)}")
