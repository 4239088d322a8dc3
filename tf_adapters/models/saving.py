"""Reads and writes adapter folders, which hold only the trained weights.

`adapter_config.json` describes the adapter and its encoder,
`adapter.safetensors` holds all trained variables by name, and `README.md` is a
model card. Loading is strict: names and shapes must match the model.
"""

from collections.abc import Sequence
import os
from pathlib import Path
from typing import Any

import keras
import numpy as np

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.adapter_folder import FORMAT_VERSION
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import AdapterError
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.interop import foreign_folder
from tf_adapters.interop import formats
from tf_adapters.interop.stored_adapter import StoredAdapter
from tf_adapters.models import adapter_reading
from tf_adapters.models import adapter_writing
from tf_adapters.models import composed_model
from tf_adapters.models import composition
from tf_adapters.models import fusion_model
from tf_adapters.models import recorded_members
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.adapter_model import check_adapter_model
from tf_adapters.models.model_checks import checked_encoder

_FORMATS = ("tf_adapters", *formats.FORMATS)


def save_adapter(
    model: AdapterModel,
    folder: str | os.PathLike[str],
    details: dict[str, Any] | None = None,
    format: str = "tf_adapters",
    with_head: bool = True,
    overwrite: bool = False,
) -> int | None:
    """Writes the trained weights of `model` to `folder`.

    Args:
        model: `AdapterModel`.
        folder: Path. An earlier adapter in this library's format is replaced
            if it has the same encoder, method and head. The other formats
            require a folder that does not exist.
        details: Dict of plain values for `README.md` and the configuration,
            such as task, metrics and maximum length. Default: none.
        format: `"tf_adapters"` (default); `"adapterhub"`, which the `adapters`
            library loads (bottlenecks and their fusion, LoRA, (IA)^3, prefix
            and prompt tuning, and unions of these); or `"peft"` (LoRA, (IA)^3,
            prefix and prompt tuning, layer norms).
        with_head: Whether to save the head, too. Defaults to `True`.
        overwrite: Whether to replace an adapter with another encoder, method or
            head, or the adapter of a finished run. Defaults to `False`.

    Returns:
        Size of the weights file in bytes, or `None` for other formats.

    Raises:
        AdapterError: If `folder` exists and is not an adapter of this library's
            format, or belongs to another model or a finished run and
            `overwrite` is not set; if a weight is not finite; if the model is a
            fusion from a `.keras` file; or if the format cannot represent the
            trained weights. The message names the weight, or the setting that
            avoids the error.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.LoRA(rank=4), head)
        >>> size = tf_adapters.save_adapter(model, "films", {"task": "films"})
        >>> tf_adapters.save_adapter(
        ...     model, "films_for_peft", format="peft", with_head=False
        ... )
    """
    check_adapter_model(model, "save_adapter")
    check_known("format", format, _FORMATS, AdapterError)
    tensors = {
        name: variable.numpy()
        for name, variable in model.trained_variables().items()
    }
    tensors = model.method.gating.pack(tensors)
    adapter_folder.check_finite(tensors)
    config = describe_adapter(model, details)
    if not with_head:
        config, tensors = adapter_reading.without_head(config, tensors)
    if format == "tf_adapters":
        return adapter_writing.write_adapter(folder, config, tensors, overwrite)
    if model.below is not None:
        raise AdapterError(
            "This adapter is stacked on others, which another library's "
            'format cannot store. Save it with format="tf_adapters".'
        )
    members = [
        (
            member.name,
            {**config, "method": methods.to_config(member.method)},
            member.tensors,
        )
        for member in model.members
        if model.method.adapters
    ]
    config = {**config, "members": [m for m in config["members"] if members]}
    foreign_folder.write_folder(
        folder, format, config, tensors, members, model.encoder_info
    )
    return None


def describe_adapter(
    model: AdapterModel, details: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Returns the content of `adapter_config.json` for a model.

    Raises:
        AdapterError: If the model is a fusion or composition whose members are
            unknown.
    """
    below = composition.all_members(model.below) if model.below else ()
    if len(model.method.adapters) + len(below) != len(model.members):
        raise AdapterError(
            "This model does not know the folders of its members: a .keras "
            "file has their weights only. Save the model that `fuse` or "
            "`load_adapter` returned."
        )
    encoder = model.encoder_info
    return {
        "format_version": FORMAT_VERSION,
        "encoder": {
            "name": encoder.name,
            "fingerprint": encoder.fingerprint,
            "quantization": encoder.quantization,
            "num_blocks": encoder.backbone.num_layers,
            "width": encoder.backbone.hidden_dim,
        },
        "method": methods.to_config(model.method),
        "head": None if model.head is None else heads.to_config(model.head),
        "plugins": adapter_reading.plugins_of(model.method, model.head),
        "members": recorded_members.members_to_config(model.members),
        "below": model.below and composition.tree_to_config(model.below),
        "left_out": list(model.left_out),
        "details": details or {},
    }


def load_adapter(
    folder: StoredAdapter | str | os.PathLike[str],
    encoder: Encoder,
    adapters: Sequence[str | os.PathLike[str]] | None = None,
    with_head: bool = True,
    below: composition.Composition
    | str
    | os.PathLike[str]
    | AdapterModel
    | None = None,
    **options: Any,
) -> AdapterModel:
    """Returns the `AdapterModel` that `save_adapter` saved.

    Also reads folders of AdapterHub's `adapters` and of PEFT. The guide lists
    which of their adapters are supported.

    Args:
        folder: Path of an adapter folder or of the run that wrote one, an
            address `hf://owner/name@revision` on the Hugging Face Hub, or a
            `StoredAdapter`.
        encoder: The `Encoder` that the adapter was trained on.
        adapters: Folders of a fusion's members, in the fusion's order, if they
            have moved. Default: their folders at training time. Members with
            `hf://` addresses are downloaded only if they are listed here, not
            if only the folder itself names them.
        with_head: Whether to load the adapter's head, too. Defaults to `True`.
        below: The adapter or composition to put below this adapter; see
            `compose`. Default: the one that this adapter was trained on.
        **options: See `AdapterModel`.

    Raises:
        AdapterError: If the folder is damaged, a weight is missing, unexpected
            or has the wrong shape, or the adapter was trained with another
            encoder or another fusion member.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.LoRA(rank=4), head)
        >>> size = tf_adapters.save_adapter(model, "films")
        >>> encoder, _ = tf_adapters.load_encoder("minilm")  # A fresh one.
        >>> tf_adapters.load_adapter("films", encoder).method.rank
        4
    """
    checked_encoder(encoder)
    read = adapter_reading.read_adapter(folder, encoder, with_head)
    config, method = read.config, read.method
    if method.adapters and below is not None:
        raise AdapterError(
            "A fusion cannot be stacked on other adapters. Load it without "
            "`below`."
        )
    # `below` replaces the members, so their folders need not exist.
    recorded = [] if below is not None else config.get("members", [])
    members = recorded_members.members_from_config(recorded, adapters, encoder)
    tree = composed_model.restore(
        config, members, below, encoder, read.stored.source
    )
    if tree is None:
        fusion_model.check_members(method, members, encoder)
    methods_below = composed_model.methods_of(tree)
    model = AdapterModel(
        encoder, method, read.head, below=methods_below, **options
    )
    if tree is None:
        fusion_model.load_into(model, members)
    else:
        composed_model.load_below(model, tree)
    _assign(model, model.trained_variables(), read.tensors, read.weights_file)
    if config.get("left_out"):
        model.leave_out(config["left_out"])
    return model


def _assign(
    model: AdapterModel,
    variables: dict[str, keras.Variable],
    tensors: dict[str, np.ndarray],
    path: Path,
) -> None:
    shapes = {name: tuple(v.shape) for name, v in variables.items()}
    try:
        tensors = model.method.gating.unpack(tensors, shapes)
    except ValueError as error:
        raise AdapterError(f"{path} does not fit the model. {error}") from error
    model.hold_encoder()
    adapter_folder.assign_tensors(variables, tensors, path)
    model.reparameterization.restart()


def start_from(model: AdapterModel, folder: str | os.PathLike[str]) -> None:
    """Assigns a trained adapter's weights to a model, except the head's.

    Args:
        model: `AdapterModel` with a head.
        folder: Path of a run or of an adapter folder.

    Raises:
        AdapterError: If the adapter belongs to another encoder or method, or
            is damaged. The model's weights are then unchanged.
    """
    read = adapter_reading.read_adapter(
        folder, model.encoder_info, with_head=False
    )
    # Compare settings, not objects: re-running a notebook cell redefines them.
    if methods.to_config(read.method) != methods.to_config(model.method):
        raise AdapterError(
            f"The adapter in {folder} has the method {read.method}, but this "
            f"model has {model.method}. Training can start only from an "
            "adapter with the same method and settings."
        )
    own_head = {variable.path for variable in model.head_layer.weights}
    variables = model.trained_variables()
    _assign(
        model,
        {k: v for k, v in variables.items() if k not in own_head},
        read.tensors,
        read.weights_file,
    )
    model.method.gating.reopen(model)
