"""Reads and writes adapter folders of Hugging Face's PEFT (`peft` 0.21.2)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
import re
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common import tensors_file
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import public_names
from tf_adapters.interop import tensor_names
from tf_adapters.interop.adapterhub import folder as adapterhub_folder
from tf_adapters.interop.architectures import check_model_type
from tf_adapters.interop.architectures import check_not_fused
from tf_adapters.interop.peft import fused
from tf_adapters.interop.peft import heads as peft_heads
from tf_adapters.interop.peft import lora
from tf_adapters.interop.peft import table

if TYPE_CHECKING:
    from tf_adapters.interop.architectures import Architecture

_VERSION = "0.21.2"
# Keys that all kinds of PEFT's adapters have.
_COMMON = {
    "auto_mapping",
    "base_model_name_or_path",
    "inference_mode",
    "modules_to_save",
    "peft_version",
    "revision",
    "task_type",
}


def weights_file(folder: Path) -> Path:
    """Returns the path of the file with a PEFT folder's tensors."""
    safe = Path(folder) / "adapter_model.safetensors"
    return safe if safe.exists() else Path(folder) / "adapter_model.bin"


def read_adapter(
    folder: Path,
    config: dict[str, Any],
    shape: methods.EncoderShape,
    architecture: Architecture,
    with_head: bool = True,
) -> tuple[methods.Method, dict[str, Any] | None, dict[str, np.ndarray], Path]:
    """Reads an adapter folder of PEFT.

    The arguments and the return values are the same as for `read_adapter` in
    `interop/adapterhub/folder.py`.
    """
    path = Path(folder) / adapter_folder.CONFIG_FILE
    _check_model(config, architecture, path)
    kind = config["peft_type"]
    if kind not in table.ENTRIES:
        raise AdapterError(
            f"{path} is a `{cut(kind)}`; the kinds of PEFT that tf_adapters "
            f"supports are {', '.join(table.ENTRIES)}."
        )
    weights = weights_file(folder)
    tensors = adapterhub_folder.read_weights(weights)
    tensors = _without_prefix(tensors, architecture)
    check_not_fused(architecture, kind)
    if architecture.has_norm_in_head:
        tensors = peft_heads.without_head(tensors, architecture, with_head)
        config = {**config, "task_type": None, "auto_mapping": None}
    form = peft_heads.read_head(config, tensors, architecture)
    if form is None or not with_head:
        tensors = peft_heads.without_saved(
            config, tensors, architecture, with_head
        )
    names = form.tensor_names() if form else []
    of_head = {theirs for name in names for theirs in name.theirs}
    rest = {k: v for k, v in tensors.items() if k not in of_head}
    read = lora.read if kind == "LORA" else _read_by_table
    own = {k: v for k, v in config.items() if k not in _COMMON}
    method, found = read(own, path, shape, architecture, rest)
    if not with_head or form is None:
        return method, None, found, weights
    head_tensors = {k: v for k, v in tensors.items() if k in of_head}
    found |= tensor_names.to_ours(names, head_tensors, folder)
    labels = [f"LABEL_{i}" for i in range(len(found["head/bias"]))]
    return method, form.to_config(labels), found, weights


def _check_model(
    config: dict[str, Any], architecture: Architecture, source: Path
) -> None:
    """Raises an error if the configuration is for another kind of encoder.

    PEFT stores the kind of encoder only if the model has no task. With a task,
    a wrong encoder is found later, by the names of the tensors.
    """
    mapping = config.get("auto_mapping") or {}
    found = re.match(
        r"transformers\.models\.(\w+)", mapping.get("parent_library") or ""
    )
    if found:
        model_type = found[1].replace("_", "-")
        check_model_type(model_type, architecture, source)


def _without_prefix(
    tensors: dict[str, np.ndarray], architecture: Architecture
) -> dict[str, np.ndarray]:
    """Strips the prefixes of PEFT and of the encoder from tensor names."""
    found = {}
    for name, tensor in tensors.items():
        for start in ("base_model.", "model.", f"{architecture.prefix}."):
            name = name.removeprefix(start)
        name = name.replace(".ia3_l.weight", ".ia3_l")
        if name in found:
            raise ValueError(f"two tensors have the name `{cut(name)}`")
        found[name] = tensor
    return found


def _read_by_table(
    config: dict[str, Any],
    source: Path,
    shape: methods.EncoderShape,
    architecture: Architecture,
    tensors: dict[str, np.ndarray],
) -> tuple[methods.Method, dict[str, np.ndarray]]:
    """Converts a PEFT adapter other than LoRA to our method and our tensors.

    Returns the method, and a dict from our tensor names to arrays.
    """
    entry = table.ENTRIES[config["peft_type"]]
    method = entry.read(config, source)
    sizes = entry.of_encoder(method, shape, architecture)
    # A prompt for another encoder can have the same shape.
    for key in ("num_layers", "token_dim"):
        if config.get(key) not in (None, sizes.get(key)):
            raise AdapterError(
                f"{source} is for encoders of `{key}: {cut(config[key])}`; "
                f"this one has {sizes[key]}."
            )
    names = entry.tensor_names(method, shape, architecture)
    return method, tensor_names.to_ours(
        names, tensors, source.parent, entry.hint
    )


def write_adapter(
    folder: Path,
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> None:
    """Writes an adapter and its head in PEFT's format.

    Args:
        folder: Path of an existing folder.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
        shape: `EncoderShape`.
        architecture: `Architecture`.

    Raises:
        AdapterError: If PEFT has no such method or head.
    """
    method = methods.from_config(config["method"])
    entry = table.BY_METHOD.get(type(method))
    if entry is None:
        raise AdapterError(
            f"PEFT has no method `{methods.name_of(method)}`. Bottleneck "
            "adapters and their fusion go into AdapterHub's format: "
            "--format=adapterhub."
        )
    if isinstance(method, methods.PrefixTuning) and method.form == "peft":
        method, tensors = _without_network(method, tensors)
    check_not_fused(architecture, entry.defaults["peft_type"])
    ranks = {}
    if isinstance(method, methods.LoRA):
        method, tensors, ranks = fused.joined(
            method, tensors, shape, architecture
        )
    own = entry.write(method, "PEFT") | ranks
    own |= entry.of_encoder(method, shape, architecture)
    task, of_head, saved = peft_heads.write_head(config["head"], architecture)
    if isinstance(method, methods.PrefixTuning):
        peft_heads.check_prefix(task, architecture)
    names = _full_names(
        entry.tensor_names(method, shape, architecture), of_head, architecture
    )
    tensor_names.check_stored(names, tensors, "PEFT")
    tensors_file.write_tensors(
        weights_file(folder).with_suffix(".safetensors"),
        tensor_names.to_theirs(names, tensors),
        {"format": "pt"},
    )
    encoder = public_names.hub_id(config["encoder"]["name"])
    adapterhub_folder.write_json(
        Path(folder) / adapter_folder.CONFIG_FILE,
        {
            "auto_mapping": None,
            "base_model_name_or_path": encoder,
            "inference_mode": True,
            "modules_to_save": saved,
            "peft_version": _VERSION,
            "revision": None,
            "task_type": task,
            **own,
        },
    )


def _full_names(
    names: list[tensor_names.TensorName],
    of_head: list[tensor_names.TensorName],
    architecture: Architecture,
) -> list[tensor_names.TensorName]:
    """Adds the prefixes of PEFT and of the encoder to PEFT's tensor names.

    `names` are the adapter's tensors, and `of_head` the head's.
    """
    is_prompt = any(name.theirs == ("prompt_embeddings",) for name in names)
    start = "base_model." if is_prompt else "base_model.model."
    encoder = f"{start}{architecture.prefix}."
    pooler = start if architecture.pooler_in_head else encoder
    around = "" if is_prompt else encoder if of_head else start
    return [name.within("", around) for name in names] + [
        name.within(
            "", pooler if peft_heads.POOLER in name.theirs[0] else start
        )
        for name in of_head
    ]


def _without_network(
    method: methods.PrefixTuning, tensors: dict[str, np.ndarray]
) -> tuple[methods.PrefixTuning, dict[str, np.ndarray]]:
    """Replaces the network of prefix tuning by its output, as PEFT saves it.

    Raises:
        AdapterError: If the network's activation is not tanh, as PEFT requires.
    """
    if not method.hidden_units:
        return method, tensors
    if method.activation != "tanh":
        raise AdapterError(
            "PEFT's prefixes come from a network with method.activation=tanh."
        )
    start = "shared_prefix/"
    own = {k.removeprefix(start): v for k, v in tensors.items()}
    hidden = np.tanh(own["embeddings"] @ own["down_kernel"] + own["down_bias"])
    vectors = hidden @ own["up_kernel"] + own["up_bias"]
    rest = {k: v for k, v in tensors.items() if not k.startswith(start)}
    method = dataclasses.replace(method, hidden_units=0)
    return method, {**rest, f"{start}vectors": vectors}
