"""Adapter folders on the Hugging Face Hub, down and up."""

import os
from pathlib import Path

from tf_adapters.common import network
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import public_folder
from tf_adapters.interop.hub_address import parse_address

_FILES = ("*.json", "*.safetensors", "*.bin", "README.md")


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


def find_cached(address):
    """Returns the folder of an adapter in the Hub's cache, or `None`.

    Args:
        address: See `pull`. Nothing is downloaded.
    """
    import huggingface_hub

    repository, revision = parse_address(address)
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository, revision=revision, local_files_only=True
            )
        )
    except (
        huggingface_hub.errors.LocalEntryNotFoundError,
        huggingface_hub.errors.HFValidationError,
    ):
        return None


def push(folder, address, private=False):
    """Uploads an adapter folder, and makes its repository if there is none.

    Only the files that make an adapter go there, and without the places of
    this machine; see `public_folder`.

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
    files = public_folder.public_files(folder)
    online = network.answers(_endpoint())
    try:
        api = huggingface_hub.HfApi()
        api.create_repo(repository, private=private, exist_ok=True)
        commit = api.create_commit(
            repo_id=repository,
            operations=[
                huggingface_hub.CommitOperationAdd(name, content)
                for name, content in files.items()
            ],
            revision=revision,
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
