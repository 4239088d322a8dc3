"""Downloads encoders, with clear errors if that is not possible."""

import pathlib

from tf_adapters.common import network
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

_HUGGINGFACE_FILES = [
    "README.md",  # The license, for exported files.
    "*.json",
    "*.txt",
    "*.model",
    "*.safetensors",
    "*.weights.h5",
    "assets/**",
]


def huggingface_folder(name: str) -> pathlib.Path:
    """Returns the local folder of an encoder from the Hugging Face Hub.

    If the encoder is not cached, it is downloaded.

    Args:
        name: `hf://owner/model`.

    Raises:
        UserError: If the encoder is not cached and cannot be downloaded.
    """
    # Imported here, because only this kind of name needs it.
    import huggingface_hub

    endpoint = network.huggingface()
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
    # The errors of huggingface_hub have no common base class.
    except Exception as error:
        if online:
            raise UserError(
                f"The encoder `{cut(name)}` could not be downloaded from "
                f"{endpoint}: {cut(error)}"
            ) from error
        raise UserError(_no_network(name, endpoint)) from error


def check_preset(name: str, handle: str) -> None:
    """Checks that a KerasHub preset is cached or that Kaggle can be reached.

    Args:
        name: Name that the user asked for.
        handle: Its Kaggle handle, `kaggle://owner/model/keras/variant/version`.

    Raises:
        UserError: If the preset is not cached and Kaggle does not respond.
    """
    import kagglehub.config

    path = pathlib.Path(kagglehub.config.get_cache_folder(), "models")
    if (path / handle.removeprefix("kaggle://") / "config.json").is_file():
        return
    host = "https://api.kaggle.com"
    if not network.answers(host):
        raise UserError(_no_network(name, host))


def _no_network(name: str, host: str) -> str:
    return (
        f"The encoder `{cut(name)}` is not on this machine and {host} does not "
        "answer. Use `minilm`, which is installed with the requirements, give "
        "the path of a folder that holds an encoder, or try again with a "
        "network."
    )
