"""Names of encoders and adapters that are valid on other machines."""

from pathlib import Path
import re

from tf_adapters.encoders import minilm


def hub_id(encoder_name: str) -> str | None:
    """Returns an encoder's id on the Hugging Face Hub, if it is known.

    Args:
        encoder_name: Name as given to `load_encoder`.

    Returns:
        `owner/name`, for `from_pretrained` of `transformers`, or `None` for a
        folder or a KerasHub preset.
    """
    if encoder_name == "minilm":
        return minilm.HUB_ID
    if encoder_name.startswith("hf://"):
        return encoder_name.removeprefix("hf://")
    return None


def public_name(name: str) -> str:
    """Returns a path's last part. Returns names and addresses unchanged.

    Args:
        name: A path, a name without slashes, or an address like
            `hf://owner/name`.
    """
    if "://" in name and not name.startswith("file://"):
        return name
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def public_id(name: str) -> str:
    """Returns a path's last part. Returns ids on the Hub unchanged.

    Args:
        name: An encoder's name in another library's configuration.
    """
    is_id = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name)
    return name if is_id and not Path(name).exists() else public_name(name)
