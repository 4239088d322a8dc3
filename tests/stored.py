"""Adapter folders that are changed on purpose."""

import json

from safetensors.numpy import load_file
from safetensors.numpy import save_file


def change_config(folder, change):
    """Applies a function to the dict in a folder's `adapter_config.json`."""
    path = folder / "adapter_config.json"
    config = json.loads(path.read_text())
    change(config)
    path.write_text(json.dumps(config))


def change_weights(folder, change):
    """Applies a function to a folder's dict of tensors.

    The folder then is one without a checksum, as the first release wrote it:
    what else is checked of its tensors shows.
    """
    path = folder / "adapter.safetensors"
    tensors = {name: value.copy() for name, value in load_file(path).items()}
    change(tensors)
    save_file(tensors, path)
    change_config(folder, lambda config: config.pop("weights_sha256", None))
