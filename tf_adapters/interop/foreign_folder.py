"""Reads and writes adapter folders in the formats of other libraries."""

from __future__ import annotations

from collections.abc import Sequence
import logging
import os
from pathlib import Path
import tempfile
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import shown
from tf_adapters.interop import architectures
from tf_adapters.interop import masked_lm
from tf_adapters.interop import public_names
from tf_adapters.interop.adapterhub import checks as adapterhub_checks
from tf_adapters.interop.adapterhub import folder as adapterhub_folder
from tf_adapters.interop.adapterhub import fusion as adapterhub_fusion
from tf_adapters.interop.formats import FORMATS
from tf_adapters.interop.formats import SETUP_FILE
from tf_adapters.interop.peft import folder as peft_folder

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.interop.stored_adapter import StoredAdapter

_LOGGER = logging.getLogger(__name__)

# Errors that a damaged or unexpected file can raise in the readers.
_DAMAGED = (
    ArithmeticError,
    AttributeError,
    IndexError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


def read_folder(
    stored: StoredAdapter, encoder: Encoder, with_head: bool = True
) -> tuple[dict[str, Any], dict[str, np.ndarray], Path]:
    """Reads an adapter folder of another library.

    No code in the folder is run.

    Args:
        stored: `StoredAdapter` in another library's format.
        encoder: `Encoder`. The other libraries do not store its fingerprint.
        with_head: Whether to read the head. Defaults to `True`.

    Returns:
        A tuple of three: the equivalent contents of our
        `adapter_config.json`; a dict from our tensor names to float32 arrays;
        and the path of the file with the tensors.

    Raises:
        AdapterError: If the folder is damaged, is for another encoder, or has
            a method or head that tf_adapters does not have.
    """
    folder, config = stored.path.absolute(), stored.config
    arguments = *_facts(encoder), with_head
    if stored.format != "peft":
        architectures.check_in_adapterhub(arguments[1])
    read = adapterhub_folder.read_adapter
    if stored.format == "peft":
        read = peft_folder.read_adapter
    elif (folder / SETUP_FILE).is_file():
        read = adapterhub_fusion.read_fusion
    try:
        method, head, tensors, path, *files = read(folder, config, *arguments)
        head, tensors = masked_lm.tied(head, tensors, encoder)
        members = [_member(file) for of_members in files for file in of_members]
    except UserError as error:
        if isinstance(error, AdapterError):
            raise
        raise AdapterError(f"{folder}: {error}") from error
    except _DAMAGED as e:
        raise AdapterError(
            f"{folder} is damaged, or of a version that tf_adapters does not "
            f"know: {shown(e)}."
        ) from e
    config = {
        "format_version": adapter_folder.FORMAT_VERSION,
        "encoder": {
            "name": encoder.name,
            "fingerprint": encoder.fingerprint,
        },
        "method": methods.to_config(method),
        "head": head,
        "members": members,
        "left_out": [],
        "details": {},
    }
    return config, tensors, path


def _facts(
    encoder: Encoder,
) -> tuple[methods.EncoderShape, architectures.Architecture]:
    """Returns an encoder's `EncoderShape` and `Architecture`."""
    shape = methods.EncoderShape.of(encoder)
    return shape, architectures.of_encoder(encoder)


def _member(file: Path) -> dict[str, str]:
    return {
        "name": file.parent.name,
        "folder": str(file.parent),
        "fingerprint": adapter_folder.checksum(file),
    }


def write_folder(
    folder: str | os.PathLike[str],
    form: str,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    members: list[tuple[str, dict[str, Any], dict[str, np.ndarray]]],
    encoder: Encoder,
) -> None:
    """Writes one of our adapters in another library's format.

    Args:
        folder: Path that does not exist yet.
        form: One of `FORMATS`.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
        members: For a fusion, a list of triples: a member's name, its
            configuration and its tensors. Otherwise empty.
        encoder: `Encoder`.

    Raises:
        AdapterError: If the format cannot store the adapter, or the folder
            exists. No partial folder remains.
    """
    check_known("format", form, FORMATS, AdapterError)
    folder = Path(folder)
    if folder.exists():
        raise AdapterError(f"{folder} exists. Give a folder that does not.")
    config, tensors = _without(config.get("left_out"), config, tensors)
    tensors = _divided(config["head"] or {}, tensors)
    # In AdapterHub's format, members leave out the same blocks as the fusion.
    blocks = config["method"].get("leave_out")
    members = [(name, *_without(blocks, *member)) for name, *member in members]
    arguments = _facts(encoder)
    if form == "adapterhub":
        architectures.check_in_adapterhub(arguments[1])
    existing = next(path for path in folder.parents if path.exists())
    with tempfile.TemporaryDirectory(dir=existing) as scratch:
        partial = Path(scratch) / folder.name
        partial.mkdir()
        head = config["head"] or {}
        if form == "adapterhub" and head.get("name") == masked_lm.NAME:
            tensors = masked_lm.untied(head, tensors, encoder)
        if form == "peft":
            peft_folder.write_adapter(partial, config, tensors, *arguments)
        elif members:
            adapterhub_fusion.write_fusion(
                partial, config, tensors, members, *arguments
            )
        else:
            name = folder.name
            adapterhub_checks.check_name(name)
            adapterhub_folder.write_adapter(
                partial, name, config, tensors, *arguments
            )
        mode = config["encoder"].get("quantization")
        if mode:
            _LOGGER.warning(
                "The encoder of this adapter is quantized to %s, which the "
                "format %s cannot store. On an encoder that is not quantized, "
                "its answers differ by the rounding.",
                *(mode, form),
            )
        card = _card(form, config, folder.name)
        (partial / "README.md").write_text(card, encoding="utf-8")
        folder.parent.mkdir(parents=True, exist_ok=True)
        partial.rename(folder)


def _divided(
    head: dict[str, Any], tensors: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Divides a calibrated head's last layer by its temperature.

    Other libraries have no temperature: the logits themselves must be those
    from which the probabilities are computed.

    Args:
        head: The head in our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
    """
    temperature = head.get("temperature", 1.0)
    if temperature == 1.0:
        return tensors
    divided = {
        name: tensors[name] / np.asarray(temperature, tensors[name].dtype)
        for name in ("head/kernel", "head/bias")
        if name in tensors
    }
    return {**tensors, **divided}


def _without(
    blocks: Sequence[int] | None,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Removes blocks that are left out from a configuration and its tensors.

    Args:
        blocks: Indices of the blocks to remove, or `None`.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.

    Raises:
        AdapterError: If the format cannot store that blocks are left out.
    """
    if not blocks:
        return config, tensors
    method = config["method"]
    if "leave_out" not in method or method["name"] == "prefix_tuning":
        raise AdapterError(
            f"An adapter `{method['name']}` that was left out of some blocks "
            "cannot be saved in another library's format."
        )
    blocks = sorted({*method["leave_out"], *blocks})
    starts = tuple(f"block_{block}_" for block in blocks)
    kept = {k: v for k, v in tensors.items() if not k.startswith(starts)}
    config = {**config, "method": {**method, "leave_out": blocks}}
    return config, kept


def _card(form: str, config: dict[str, Any], name: str) -> str:
    encoder = config["encoder"]["name"]
    hub_id = public_names.hub_id(encoder)
    encoder = hub_id or public_names.public_name(encoder)
    if form == "peft":
        head = """---
library_name: peft
---
"""
        code = """from peft import PeftModel

model = PeftModel.from_pretrained(model, "path/of/this/folder")"""
        about = "`model` is the encoder, with the head's class if it has one."
    else:
        head = """---
tags:
- adapter-transformers
---
"""
        options = "use_safetensors=True, set_active=True"
        is_fusion = bool(config.get("members"))
        load = "load_adapter_setup" if is_fusion else "load_adapter"
        source = hub_id or "path/of/the/encoder"
        code = f"""import adapters

model = adapters.AutoAdapterModel.from_pretrained("{source}")
model.{load}("path/of/this/folder", {options})"""
        about = "Without `use_safetensors=True` the library looks for .bin."
        if hub_id is None:
            about += (
                f" The encoder is the one that tf_adapters calls `{encoder}`; "
                "give its weights as a Hugging Face folder, or their id."
            )
        if (config["head"] or {}).get("name") == "choice":
            about += (
                " The head is for questions with 2 choices. For another "
                'number, set `model.heads["..."].config["num_choices"]`.'
            )
    mode = config["encoder"].get("quantization")
    if mode:
        about += (
            f" It was saved from a model whose encoder tf_adapters had "
            f"quantized to {mode}; on another encoder, its answers differ by "
            "the rounding."
        )
    return f"""{head}# {name}: an adapter for `{encoder}`

Trained with tf_adapters.

```python
{code}
```

{about}
"""
