"""Reads and writes folders with one adapter of AdapterHub's `adapters`."""

from __future__ import annotations

import json
from pathlib import Path
import re
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common import tensors_file
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import public_names
from tf_adapters.interop import tensor_names
from tf_adapters.interop.adapterhub import checks as adapterhub_checks
from tf_adapters.interop.adapterhub import configurations
from tf_adapters.interop.adapterhub import heads as adapterhub_heads
from tf_adapters.interop.adapterhub.names import Place
from tf_adapters.interop.architectures import check_encoder
from tf_adapters.interop.torch_file import read_torch_file
from tf_adapters.methods.union import without_map

if TYPE_CHECKING:
    import numpy as np

    from tf_adapters.interop.architectures import Architecture

HEAD_FILE = "head_config.json"
# Version of `adapters` that is stored in written folders.
VERSION = "adapters.1.3.0"
# Dict from module names of versions before 1.0 to the names in 1.3.0.
_OLD_NAMES = {
    "attention_text_task_adapters": "adapters",
    "attention_text_lang_adapters": "adapters",
    "layer_text_task_adapters": "adapters",
    "layer_text_lang_adapters": "adapters",
    "invertible_lang_adapters": "invertible_adapters",
}


def weights_file(folder: Path, stem: str) -> Path:
    """Returns the path of `{stem}.safetensors` if it exists, or of the `.bin`.

    Args:
        folder: Path of the adapter folder.
        stem: Name of the file without its ending, `"adapter"` for example.
    """
    safe = Path(folder) / f"{stem}.safetensors"
    return safe if safe.exists() else Path(folder) / f"pytorch_{stem}.bin"


def read_weights(path: Path) -> dict[str, np.ndarray]:
    """Reads a safetensors or PyTorch file into a dict from name to array."""
    if path.suffix == ".bin":
        return read_torch_file(path)
    return adapter_folder.read_tensors(path)


def read_adapter(
    folder: Path,
    config: dict[str, Any],
    shape: methods.EncoderShape,
    architecture: Architecture,
    with_head: bool = True,
) -> tuple[methods.Method, dict[str, Any] | None, dict[str, np.ndarray], Path]:
    """Reads an adapter folder of AdapterHub.

    Args:
        folder: Path with `adapter_config.json` and tensors, and optionally the
            files of a head.
        config: Contents of `adapter_config.json`.
        shape: `EncoderShape` of the encoder.
        architecture: `Architecture` of the encoder.
        with_head: Whether to read the head. Defaults to `True`.

    Returns:
        A tuple of four: the method; our configuration of the head, or `None`;
        a dict from our tensor names to float32 arrays; and the path of the
        file with the adapter's tensors.

    Raises:
        AdapterError: If a file is damaged, a tensor is missing or unexpected,
            the encoder differs, or tf_adapters has no such method or head.
    """
    folder = Path(folder)
    check_encoder(config, shape, architecture, folder)
    method = configurations.read_method(
        config["config"], shape.width, _version(config), folder
    )
    adapterhub_checks.check_embeddings(method, shape)
    path = weights_file(folder, "adapter")
    tensors = normalized(read_weights(path), architecture)
    if config.get("type") == "text_task":
        method = _without_missing_coupling(method, tensors)
    _check_blocks(tensors, shape, architecture, path)
    place = Place(shape, architecture, config["name"])
    names = configurations.tensor_names(method, place)
    ours = tensor_names.to_ours(names, tensors, path)
    head, of_head = None, {}
    if with_head and _has_head(folder):
        head, of_head = read_head(folder, shape, architecture)
    return method, head, {**ours, **of_head}, path


def _has_head(folder: Path) -> bool:
    """Returns whether a folder has a head.

    Raises:
        AdapterError: If it has a head's tensors but no `head_config.json`.
    """
    if (folder / HEAD_FILE).exists():
        return True
    if weights_file(folder, "model_head").exists():
        raise AdapterError(
            f"{folder} has the weights of a head but no {HEAD_FILE}. Copy that "
            "file too, or load the adapter without its head: with_head=False."
        )
    return False


def _version(config: dict[str, Any]) -> tuple[int, ...]:
    """Returns the version of `adapters` that wrote a file, as a tuple.

    For the predecessor, `adapter-transformers`, the tuple begins with -1, so
    that it sorts first. If the file has no version, the tuple is empty.
    """
    version = config.get("version")
    if not version:
        return ()
    numbers = tuple(int(n) for n in re.findall(r"\d+", str(version)))
    return numbers if str(version).startswith("adapters.") else (-1, *numbers)


def normalized(
    tensors: dict[str, np.ndarray], architecture: Architecture
) -> dict[str, np.ndarray]:
    """Gives tensors of older versions the names that `adapters` 1.3.0 uses.

    The encoder's prefix, such as `"bert."`, is added to names that lack it.
    """
    found = {}
    for name, tensor in tensors.items():
        for old, new in _OLD_NAMES.items():
            name = name.replace(old, new)
        start = f"{architecture.prefix}."
        name = name if name.startswith(start) else start + name
        if name in found:
            raise ValueError(f"two tensors have the name `{cut(name)}`")
        found[name] = tensor
    return found


def _without_missing_coupling(
    method: methods.Method, tensors: dict[str, np.ndarray]
) -> methods.Method:
    """Removes the invertible adapter from a method if it has no tensors.

    In version 1, the configurations of task adapters could include a language
    adapter's invertible adapter, whose tensors are not in the folder.
    """
    has_coupling = any("invertible_adapters" in name for name in tensors)
    return method if has_coupling else without_map(method)


def read_head(
    folder: Path, shape: methods.EncoderShape, architecture: Architecture
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns our configuration of the head in a folder of AdapterHub.

    Also returns a dict from our tensor names to float32 arrays.
    """
    head, names, start = adapterhub_heads.read_head(
        folder / HEAD_FILE, shape, architecture
    )
    path = weights_file(folder, "model_head")
    tensors = read_weights(path)
    # AdapterHub also writes heads whose names begin with this head's name.
    tensors = {k: v for k, v in tensors.items() if k.startswith(start)}
    return head, tensor_names.to_ours(names, tensors, path)


def write_adapter(
    folder: Path,
    name: str,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> None:
    """Writes an adapter and its head in AdapterHub's format.

    Args:
        folder: Path of an existing folder.
        name: The adapter's name.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
        shape: `EncoderShape` of the encoder.
        architecture: `Architecture` of the encoder.

    Raises:
        AdapterError: If AdapterHub has no such method or head.
    """
    folder, method = Path(folder), methods.from_config(config["method"])
    inner = configurations.write_method(method, shape.width)
    adapterhub_checks.check_embeddings(method, shape)
    is_prompt = isinstance(method, methods.PromptTuning)
    if is_prompt and architecture.model_type == "distilbert":
        raise AdapterError(
            "The prompt tuning of `adapters` 1.3.0 does not run on DistilBERT."
        )
    names = configurations.tensor_names(
        method, Place(shape, architecture, name)
    )
    facts = facts_of(config, shape, architecture)
    of_head = []
    if config["head"] is not None:
        of_head = write_head(folder, name, config, tensors, facts, architecture)
    tensor_names.check_stored([*names, *of_head], tensors, "AdapterHub")
    write_json(
        folder / adapter_folder.CONFIG_FILE,
        {**facts, "config": inner, "name": name},
    )
    found = tensor_names.to_theirs(names, tensors)
    tensors_file.write_tensors(folder / "adapter.safetensors", found)


def write_head(
    folder: Path,
    name: str,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    facts: dict[str, Any],
    architecture: Architecture,
) -> list[tensor_names.TensorName]:
    """Writes a head in AdapterHub's format, and returns its `TensorName`s.

    Args:
        folder: Path of an existing folder.
        name: The head's name.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
        facts: Return value of `facts_of`.
        architecture: `Architecture` of the encoder.

    Raises:
        AdapterError: If AdapterHub has no such head.
    """
    inner, names = adapterhub_heads.write_head(
        config["head"], architecture, name
    )
    write_json(folder / HEAD_FILE, {**facts, "config": inner, "name": name})
    found = tensor_names.to_theirs(names, tensors)
    tensors_file.write_tensors(folder / "model_head.safetensors", found)
    return names


def facts_of(
    config: dict[str, Any],
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> dict[str, Any]:
    """Returns the entries that AdapterHub's configurations have in common.

    These are the configurations of an adapter, a head and a fusion.
    """
    return {
        "hidden_size": shape.width,
        "model_class": f"{architecture.class_name}AdapterModel",
        "model_name": public_names.hub_id(config["encoder"]["name"]) or "",
        "model_type": architecture.model_type,
        "version": VERSION,
    }


def write_json(path: Path, config: dict[str, Any]) -> None:
    """Writes a configuration as JSON, formatted as AdapterHub does."""
    text = json.dumps(config, indent=2, sort_keys=True)
    path.write_text(f"{text}\n", encoding="utf-8")


def _check_blocks(
    tensors: dict[str, np.ndarray],
    shape: methods.EncoderShape,
    architecture: Architecture,
    source: Path,
) -> None:
    """Raises an `AdapterError` if the encoder lacks an adapter's blocks."""
    pattern = rf"{re.escape(architecture.blocks)}\.(\d+)\."
    blocks = [re.search(pattern, name) for name in tensors]
    last = max((int(found[1]) for found in blocks if found), default=0)
    if last >= shape.num_blocks:
        raise AdapterError(
            f"{source} is for an encoder with {last + 1} blocks or more; this "
            f"one has {shape.num_blocks}."
        )
