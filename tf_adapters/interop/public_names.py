"""What encoders and adapters are called where this machine is not known."""

from pathlib import Path
import re

from tf_adapters.encoders import minilm


def hub_id(encoder_name: str) -> str | None:
    """Returns an encoder's id on the Hugging Face Hub, if it is known.

    Args:
        encoder_name: As `load_encoder` takes it.

    Returns:
        `owner/name`, which `from_pretrained` of `transformers` takes, or
        `None` for a folder or a KerasHub preset.
    """
    if encoder_name == "minilm":
        return minilm.HUB_ID
    if encoder_name.startswith("hf://"):
        return encoder_name.removeprefix("hf://")
    return None


def public_name(name: str) -> str:
    """Returns the last part of a path; a name or an address as it is.

    Args:
        name: A path, a name without slashes, or an address like
            `hf://owner/name`.
    """
    if "://" in name and not name.startswith("file://"):
        return name
    return re.split(r"[/\\]", name.rstrip("/\\"))[-1]


def public_id(name: str) -> str:
    """Returns an id on the Hub as it is, and the last part of a path.

    Args:
        name: What a configuration of another library calls an encoder.
    """
    is_id = re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", name)
    return name if is_id and not Path(name).exists() else public_name(name)
