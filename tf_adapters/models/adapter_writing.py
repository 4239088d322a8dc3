"""Writes the files of an adapter folder, completely or not at all."""

import json
import os
from pathlib import Path
import shutil
from typing import Any

import numpy as np

from tf_adapters.common import adapter_folder
from tf_adapters.common import moved_folders
from tf_adapters.common import own_files
from tf_adapters.common import tensors_file
from tf_adapters.common.adapter_folder import CONFIG_FILE
from tf_adapters.common.adapter_folder import WEIGHTS_FILE
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import formats


def write_adapter(
    folder: str | os.PathLike[str],
    config: dict[str, Any],
    tensors: dict[str, np.ndarray],
    overwrite: bool = False,
) -> int:
    """Writes an adapter folder, replacing an earlier one of the same model.

    The folder appears complete or not at all: it is written under another name
    and then moved.

    Args:
        folder: Path.
        config: Return value of `describe_adapter`.
        tensors: Dict from name to array.
        overwrite: Whether to replace the adapter of another model or of a
            finished run, too. Defaults to `False`.

    Returns:
        Size of the weights file in bytes.

    Raises:
        AdapterError: If `folder` is the working folder, exists and is not an
            adapter of this library's format. Or if it belongs to another model
            or to a finished run and `overwrite` is not set. Or if a weight is
            not finite, or `config` holds something that JSON does not have.
    """
    adapter_folder.check_finite(tensors)
    config = _as_json(config)
    # The name of "." is empty.
    folder = Path(folder).absolute()
    adapter_folder.check_not_working_folder(folder)
    if folder.exists():
        _check_replaceable(folder, config, overwrite)
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    own_files.make_new_folder(partial)
    try:
        located = moved_folders.with_relative_paths(config, folder)
        _write_files(partial, located, tensors)
    except BaseException:
        # If the disk is full, the partial folder would use up space.
        shutil.rmtree(partial, ignore_errors=True)
        raise
    adapter_folder.replace(folder, partial)
    return (folder / WEIGHTS_FILE).stat().st_size


def _check_replaceable(
    folder: Path, config: dict[str, Any], overwrite: bool
) -> None:
    """Raises an `AdapterError` if a folder must not be replaced.

    The folder must hold an adapter in this library's format. Unless `overwrite`
    is set, the adapter must belong to the model in `config` and to no run.
    """
    form, there = formats.read_format(folder)
    if form != formats.OURS or not there or "format_version" not in there:
        raise AdapterError(
            f"{folder} exists and is not an adapter folder of this library; "
            "saving there would delete it. Give a folder that does not exist "
            "yet."
        )
    if overwrite:
        return
    # A run has both files. A program of one's own may have one of them.
    files = [folder.parent / name for name in ("config.yaml", "result.json")]
    if folder.name == "adapter" and all(path.exists() for path in files):
        raise AdapterError(
            f"{folder} holds the adapter of a finished run, whose result.json "
            "and predictions belong to its weights. Give another folder, or "
            "pass overwrite=True to replace it."
        )
    for part in ("encoder", "method", "head", "below"):
        if _identity(there.get(part)) != _identity(config.get(part)):
            raise AdapterError(
                f"{folder} holds the adapter of another model: its {part} is "
                f"{cut(_identity(there.get(part)))}, but the one to save has "
                f"{cut(_identity(config.get(part)))}. Give another folder, or "
                "pass overwrite=True to replace it."
            )


def _as_json(config: dict[str, Any]) -> dict[str, Any]:
    """Converts a dict as a JSON file would: tuples become lists, for example.

    NumPy numbers and arrays become numbers and lists.
    """

    def plain(value: Any) -> Any:
        if isinstance(value, np.generic | np.ndarray):
            value = value.tolist()
            # NumPy's longest floats have no equal in Python.
            return float(value) if isinstance(value, np.generic) else value
        raise AdapterError(
            "An adapter's details are stored as JSON, which has no values of "
            f"type {type(value).__name__}. Received: {cut(repr(value))}"
        )

    try:
        return json.loads(json.dumps(config, default=plain))
    except (TypeError, ValueError, RecursionError) as error:
        raise AdapterError(
            f"The adapter's details cannot be stored as JSON: {cut(error)}"
        ) from error


def _identity(part: Any) -> Any:
    """Returns the value by which to compare a section of a configuration.

    That is the section's fingerprint, if it has one, or else all of it.
    """
    # The same encoder may have several names, but only one fingerprint.
    return part.get("fingerprint", part) if isinstance(part, dict) else part


def _write_files(
    folder: Path, config: dict[str, Any], tensors: dict[str, np.ndarray]
) -> None:
    tensors_file.write_tensors(folder / WEIGHTS_FILE, tensors)
    checksum = adapter_folder.checksum(folder / WEIGHTS_FILE)
    config = {**config, "weights_sha256": checksum}
    (folder / CONFIG_FILE).write_text(
        json.dumps(config, indent=2) + "\n", encoding="utf-8"
    )
    (folder / "README.md").write_text(_card(config, tensors), encoding="utf-8")


def _card(config: dict[str, Any], tensors: dict[str, np.ndarray]) -> str:
    weights = sum(int(np.prod(tensor.shape)) for tensor in tensors.values())
    method = dict(config["method"])
    name = method.pop("name")
    details = "\n".join(
        f"- {key}: `{value}`" for key, value in config["details"].items()
    )
    settings = ", ".join(f"`{key}={value}`" for key, value in method.items())
    mode = config["encoder"].get("quantization")
    encoder = f'"{config["encoder"]["name"]}"'
    if mode:
        encoder += f', quantize="{mode}"'
    return f"""# An adapter for `{config["encoder"]["name"]}`

Trained with tf_adapters, method `{name}` ({settings or "no parameters"}):
{weights:,} weights. It works only with the encoder whose fingerprint is
`{config["encoder"]["fingerprint"]}`.

{details}

```python
import tf_adapters

encoder, tokenizer = tf_adapters.load_encoder({encoder})
model = tf_adapters.load_adapter("path/of/this/folder", encoder)
```
"""
