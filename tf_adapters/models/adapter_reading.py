"""Reads an adapter folder: method, head and weights."""

import dataclasses
import os
from pathlib import Path
import sys
from typing import Any

import numpy as np

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.encoder import rounding_advice
from tf_adapters.interop import foreign_folder
from tf_adapters.interop import formats
from tf_adapters.interop.sizes import check_sizes
from tf_adapters.interop.stored_adapter import StoredAdapter
from tf_adapters.interop.stored_adapter import find_stored
from tf_adapters.methods.registry import parts_of


def plugins_of(
    method: methods.Method, head: heads.Head | None
) -> dict[str, str]:
    """Returns a dict from the name of a plug-in class to its file name.

    A class is a plug-in if it is defined outside this library.

    Args:
        method: `Method`, which may be a plug-in.
        head: `Head`, which may be a plug-in, or `None`.
    """
    named: list[tuple[object, str]] = [
        (one, methods.name_of(one)) for one in parts_of(method)
    ]
    if head is not None:
        named.append((head, heads.name_of(head)))
    found = {}
    for value, name in named:
        module = type(value).__module__
        if not module.startswith("tf_adapters."):
            path = getattr(sys.modules[module], "__file__", None) or module
            found[name] = Path(path).name
    return found


def read_method_and_head(
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    encoder: Encoder,
    folder: str | os.PathLike[str],
) -> tuple[methods.Method, heads.Head | None]:
    """Returns the method of an adapter folder, and its head or `None`.

    Args:
        config: Return value of `read_adapter_config`.
        tensors: The folder's weights, a dict from name to array.
        encoder: `Encoder`.
        folder: The adapter folder, for error messages.

    Raises:
        AdapterError: If a plug-in that defines the method or head is not
            loaded, or if the sizes of the tensors do not match the method.
        UserError: If a name or setting is unknown.
    """
    known = {**methods.METHODS, **heads.HEADS}
    for name, file in config.get("plugins", {}).items():
        if name not in known:
            raise AdapterError(
                f"{folder} needs `{cut(name)}`, which the plug-in {cut(file)} "
                f"defines. If you trust that file, give --plugin={cut(file)}, "
                "or import it before. None of its code was run."
            )
    method, head = methods.from_config(config["method"]), config["head"]
    check_sizes(method, tensors, encoder.backbone.hidden_dim, folder)
    return method, None if head is None else heads.from_config(head)


@dataclasses.dataclass(frozen=True)
class AdapterContent:
    """Content of an adapter folder in any known format.

    Attributes:
        stored: `StoredAdapter`.
        config: `adapter_config.json`, in this library's format.
        method: The method that trained the adapter.
        head: The adapter's head, or `None`.
        tensors: Dict from name to array, as stored.
        weights_file: Path of the file that holds the tensors.
    """

    stored: StoredAdapter
    config: dict[str, Any]
    method: methods.Method
    head: heads.Head | None
    tensors: dict[str, np.ndarray]
    weights_file: Path


def read_adapter(
    folder: StoredAdapter | str | os.PathLike[str],
    encoder: Encoder,
    with_head: bool = True,
) -> AdapterContent:
    """Returns the `AdapterContent` of a folder.

    Args:
        folder: `StoredAdapter`, or a path or address as for `load_adapter`.
        encoder: The `Encoder` that the adapter was trained on.
        with_head: Whether to read the head, too. If `False`, the head may be
            of a kind that this library does not have.

    Raises:
        AdapterError: If the folder is damaged or belongs to another encoder, or
            if a required plug-in is not loaded.
        UserError: If a name or setting is unknown.
    """
    is_found = isinstance(folder, StoredAdapter)
    stored = folder if is_found else find_stored(folder)
    if stored.format == formats.OURS:
        config, tensors, path = _read_ours(stored, encoder, with_head)
    else:
        config, tensors, path = foreign_folder.read_folder(
            stored, encoder, with_head
        )
    method, head = read_method_and_head(config, tensors, encoder, stored.source)
    return AdapterContent(stored, config, method, head, tensors, path)


def _read_ours(
    stored: StoredAdapter, encoder: Encoder, with_head: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray], Path]:
    folder, config = stored.path.absolute(), stored.config
    found = config["encoder"]
    if found["fingerprint"] != encoder.fingerprint:
        raise AdapterError(
            f"The adapter in {folder} was trained on encoder "
            f"`{cut(found['name'])}` with fingerprint "
            f"{found['fingerprint'][:12]}, but `{encoder.name}` has "
            f"{encoder.fingerprint[:12]}. Load that encoder."
            + rounding_advice(encoder)
        )
    _check_quantization(found.get("quantization"), encoder, folder)
    path = folder / adapter_folder.WEIGHTS_FILE
    tensors = adapter_folder.read_weights(folder, config)
    if not with_head:
        config, tensors = without_head(config, tensors)
    return config, tensors, path


def _check_quantization(
    expected: str | None, encoder: Encoder, folder: Path
) -> None:
    """Raises an `AdapterError` if the encoder is not quantized as expected.

    `expected` is the quantization of the encoder that the adapter was trained
    on. If that encoder was not quantized, `encoder` may be quantized in any
    way: the outputs change as little with the adapter as without it.
    """
    if expected in (None, encoder.quantization):
        return
    received = encoder.quantization or "not quantized"
    raise AdapterError(
        f"The adapter in {folder} was trained on encoder `{encoder.name}` "
        f"quantized to {cut(expected)}, but this one is {received}. Load it "
        f'with `tf_adapters.load_encoder(name, quantize="{cut(expected)}")`.'
    )


def without_head(
    config: dict[str, Any], tensors: dict[str, np.ndarray]
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Returns an adapter's configuration and tensors without its head."""
    tensors = {k: v for k, v in tensors.items() if not k.startswith("head/")}
    return {**config, "head": None}, tensors
