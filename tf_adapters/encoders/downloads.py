"""Encoders that lie elsewhere, and one sentence where they cannot be had."""

import os
import pathlib

from tf_adapters.common import network
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

_HUGGINGFACE_FILES = (
    "*.json",
    "*.txt",
    "*.model",
    "*.safetensors",
    "*.weights.h5",
    "assets/**",
)


def huggingface_folder(name):
    """Returns the local folder of `hf://owner/model`, downloaded if need be.

    Raises:
        UserError: If it neither lies in the cache nor can be downloaded.
    """
    # Here, not above: only this kind of name needs it.
    import huggingface_hub

    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    online = network.answers(endpoint)
    try:
        return pathlib.Path(
            huggingface_hub.snapshot_download(
                name.removeprefix("hf://"),
                allow_patterns=_HUGGINGFACE_FILES,
                ignore_patterns=["onnx/*", "openvino/*"],
                local_files_only=not online,
            )
        )
    # The library's errors have no class in common.
    except Exception as error:
        if online:
            raise UserError(
                f"The encoder `{cut(name)}` could not be downloaded from "
                f"{endpoint}: {cut(error)}"
            ) from error
        raise UserError(_no_network(name, endpoint)) from error


def check_preset(name, handle):
    """Raises if a KerasHub preset can be neither downloaded nor found.

    Args:
        name: What the user asked for.
        handle: Its Kaggle handle, `kaggle://owner/model/keras/variant/version`.

    Raises:
        UserError: If it is not in the cache and the host does not answer.
    """
    import kagglehub.config

    path = pathlib.Path(kagglehub.config.get_cache_folder(), "models")
    if (path / handle.removeprefix("kaggle://") / "config.json").is_file():
        return
    host = "https://api.kaggle.com"
    if not network.answers(host):
        raise UserError(_no_network(name, host))


def _no_network(name, host):
    return (
        f"The encoder `{cut(name)}` is not on this machine and {host} does not "
        "answer. Use `minilm`, which is installed with the requirements, give "
        "the path of a folder that holds an encoder, or try again with a "
        "network."
    )
