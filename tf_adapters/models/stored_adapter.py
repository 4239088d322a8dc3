"""A stored adapter, of this library's format or another's."""

from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import foreign_folder
from tf_adapters.interop import formats
from tf_adapters.interop import hub
from tf_adapters.interop import hub_address


def find_stored(folder):
    """Returns the path of a folder that holds an adapter of any format.

    Args:
        folder: Path of an adapter folder, or of the run that wrote one, or
            `hf://owner/name@revision`, which is downloaded if need be.
    """
    if hub_address.is_address(folder):
        folder = hub.pull(folder)
    if formats.format_of(folder):
        return Path(folder)
    return adapter_folder.find_adapter_folder(folder)


def read_stored(folder, encoder, with_head=True):
    """Returns what a folder of any known format says and holds.

    Args:
        folder: See `find_stored`.
        encoder: The `Encoder` that it was trained on.
        with_head: Whether to read the head, too. Without it, it may be of a
            kind that ours has not.

    Returns:
        What `adapter_config.json` of ours says, a dict from name to array as
        stored, and the path of the file that these come from.

    Raises:
        AdapterError: If the folder is damaged or of another encoder.
    """
    folder = find_stored(folder).absolute()
    if formats.format_of(folder):
        return foreign_folder.read_folder(folder, encoder, with_head)
    config = adapter_folder.read_adapter_config(folder)
    found = config["encoder"]
    if found["fingerprint"] != encoder.fingerprint:
        raise AdapterError(
            f"The adapter in {folder} was trained on encoder "
            f"`{cut(found['name'])}` with fingerprint "
            f"{found['fingerprint'][:12]}, but `{encoder.name}` has "
            f"{encoder.fingerprint[:12]}. Load that encoder."
        )
    path = folder / adapter_folder.WEIGHTS_FILE
    tensors = adapter_folder.read_weights(folder, config)
    if not with_head:
        config, tensors = without_head(config, tensors)
    return config, tensors, path


def without_head(config, tensors):
    """Returns what an adapter says and holds, without its head."""
    tensors = {k: v for k, v in tensors.items() if not k.startswith("head/")}
    return {**config, "head": None}, tensors
