"""Downloads adapter folders from the Hugging Face Hub and uploads them."""

from collections.abc import Iterable
import fnmatch
import functools
import os
from pathlib import Path
from pathlib import PurePosixPath
import re

from tf_adapters.common import network
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop.hub_address import parse_address

_FILES = ["*.json", "*.safetensors", "*.bin", "README.md"]


class HubError(AdapterError):
    """An adapter that cannot be downloaded now, but perhaps later."""


def pull(address: str) -> Path:
    """Downloads an adapter from the Hub and returns its folder in the cache.

    Without a network, the cached copy is used.

    Args:
        address: `hf://owner/name`, or `hf://owner/name@revision`.

    Raises:
        AdapterError: If the repository has no adapter, or it is not cached and
            cannot be downloaded. It is a `HubError` if this may change.
    """
    # Imported here: only addresses need it, and the import takes a second.
    import huggingface_hub

    repository, revision = parse_address(address)
    online = network.answers(network.huggingface())
    download = functools.partial(
        huggingface_hub.snapshot_download,
        repository,
        local_files_only=not online,
    )
    try:
        # First, because other repositories can have gigabytes of weights.
        configs = ["*adapter_config.json"]
        found = Path(download(revision=revision, allow_patterns=configs))
        if any(found.rglob("adapter_config.json")):
            # The folder's name is the commit.
            return Path(download(revision=found.name, allow_patterns=_FILES))
    # The errors of `huggingface_hub` have no common base class.
    except Exception as error:
        raise _refusal(address, online, error) from error
    raise AdapterError(
        f"There is no adapter at {address}: the repository has no "
        "adapter_config.json."
    )


def other_files(folder: str, names: Iterable[str]) -> list[str]:
    """Returns the files of a cached folder that are not of an adapter.

    Other programs may have downloaded more of the same repository.

    Args:
        folder: Path of the folder.
        names: Names of its files and folders.
    """
    return [
        name
        for name in names
        if (Path(folder) / name).is_file()
        and not any(fnmatch.fnmatch(name, pattern) for pattern in _FILES)
    ]


def find_cached(address: str) -> Path | None:
    """Returns the cached folder of an adapter on the Hub, or `None`.

    Does not download.

    Args:
        address: See `pull`.
    """
    import huggingface_hub

    repository, revision = parse_address(address)
    try:
        return Path(
            huggingface_hub.snapshot_download(
                repository,
                revision=revision,
                # Files that `pull` leaves out need not be here.
                allow_patterns=_FILES,
                local_files_only=True,
            )
        )
    except (
        huggingface_hub.errors.LocalEntryNotFoundError,
        huggingface_hub.errors.HFValidationError,
    ):
        return None


def push(
    folder: str | os.PathLike[str], address: str, private: bool = False
) -> str:
    """Uploads an adapter folder; creates its repository and branch if needed.

    Only the files of the adapter are uploaded, with this machine's paths
    replaced; see `public_folder`. They replace the files of an earlier adapter
    in the same repository.

    Args:
        folder: Path of an adapter folder of any format.
        address: `hf://owner/name`, or `hf://owner/name@branch`.
        private: Whether the repository has to be private. With `False`
            (default), a new one is as its owner's settings say, which is
            usually public.

    Returns:
        The URL of the commit.

    Raises:
        AdapterError: If the folder has no adapter, nobody is logged in, the
            Hub does not answer, or `private` is set and the repository is
            public.
    """
    # Imports Keras, which those who only download do not need.
    from tf_adapters.interop import public_folder

    if (
        not (Path(folder) / "adapter_config.json").is_file()
        and not (Path(folder) / "adapter_setup.json").is_file()
    ):
        raise AdapterError(f"{folder} is not an adapter folder.")
    repository, revision = parse_address(address)
    files = public_folder.public_files(folder)
    host = network.huggingface()
    if not network.answers(host):
        raise HubError(
            f"{host} does not answer, so nothing was uploaded. Run the command "
            "again with a network."
        )
    try:
        return _upload(repository, revision, files, private)
    except AdapterError:
        raise
    except Exception as error:
        raise _refusal(address, True, error) from error


def _upload(
    repository: str,
    revision: str | None,
    files: dict[str, Path | bytes],
    private: bool,
) -> str:
    """Uploads files in one commit, and returns its URL.

    Args:
        repository: `owner/name`. It is created if it does not exist.
        revision: Branch, or `None` for the main one.
        files: Dict from path in the repository to local path or content.
        private: See `push`.

    Raises:
        AdapterError: If `private` is set and the repository is public.
    """
    import huggingface_hub

    api = huggingface_hub.HfApi()
    # With `None` instead of `False`, an organization's own default is used.
    api.create_repo(repository, private=private or None, exist_ok=True)
    if private and not api.repo_info(repository).private:
        raise AdapterError(
            f"{repository} is public. Nothing was uploaded. Make it private on "
            "the Hub, or leave out --private."
        )
    if revision and not re.fullmatch("refs/.*|[0-9a-f]{40}", revision):
        api.create_branch(repository, branch=revision, exist_ok=True)
    there = api.list_repo_files(repository, revision=revision)
    operations = [
        huggingface_hub.CommitOperationAdd(name, content)
        for name, content in files.items()
    ] + [
        huggingface_hub.CommitOperationDelete(name)
        for name in _old_files(there, files)
    ]
    commit = api.create_commit(
        repository,
        operations,
        revision=revision,
        commit_message="Adapter of tf_adapters",
    )
    return commit.commit_url


def _old_files(there: Iterable[str], new: Iterable[str]) -> list[str]:
    """Returns the files of an earlier adapter that a push has to remove.

    Readers would prefer some of them to the new files: a setup to a single
    adapter, safetensors to `.bin`.

    Args:
        there: Paths of the files in the repository.
        new: Paths of the files to upload.
    """
    # Imports Keras, as in `push`.
    from tf_adapters.interop import public_folder

    new = set(new)
    folders = {PurePosixPath(name).parent for name in new}
    names = public_folder.FILES - {public_folder.CARD}
    return [
        name
        for name in there
        if name not in new
        and PurePosixPath(name).name in names
        and PurePosixPath(name).parent in folders
    ]


def _refusal(address: str, online: bool, error: Exception) -> AdapterError:
    host = network.huggingface()
    if not online:
        return HubError(
            f"{host} does not answer, and {cut(address)} is not on this "
            "machine. Try again with a network, or give a folder."
        )
    status = getattr(getattr(error, "response", None), "status_code", 0)
    if status == 401:
        return AdapterError(
            f"{host} does not give you access to {cut(address)}: log in "
            "with `hf auth login`, or check the name."
        )
    # Imported here, as in `pull`.
    import huggingface_hub

    is_invalid = isinstance(error, huggingface_hub.errors.HFValidationError)
    if not status and not is_invalid:
        return HubError(
            f"{cut(address)}: the transfer between {host} and this machine "
            f"failed: {cut(error)}. Try again."
        )
    kind = AdapterError if is_invalid or status in (403, 404) else HubError
    return kind(f"{host} refused {cut(address)}: {cut(error)}")
