"""Lists the adapters in a folder: names, methods, sizes, metrics."""

import dataclasses
import os
from pathlib import Path
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.interop import stored_adapter

_SUFFIXES = (".safetensors", ".bin")


@dataclasses.dataclass(frozen=True)
class Listed:
    """A description of an adapter folder, for a list of adapters.

    Attributes:
        folder: Path of the adapter's folder.
        format: `"tf_adapters"`, `"adapterhub"` or `"peft"`.
        task: Name of the task, or "-".
        method: Name of the method in the folder's format.
        size: Size of the files with tensors, in bytes.
        encoder: Name of the encoder, or its type, or "-".
        metrics: Metrics as text, such as "accuracy 0.91", or "-" if none are
            stored.
    """

    folder: Path
    format: str
    task: str
    method: str
    size: int
    encoder: str
    metrics: str = "-"


def list_adapters(folder: str | os.PathLike[str]) -> list[Listed]:
    """Returns a `Listed` for each adapter in a folder and its subfolders.

    Args:
        folder: Path.

    Raises:
        AdapterError: If a configuration is damaged.
    """
    configs = sorted(Path(folder).rglob(adapter_folder.CONFIG_FILE))
    # The name of a folder that is being written or replaced begins with a dot.
    # `os.path.isfile`, unlike `Path.is_file`, never fails on a broken link.
    return [
        _describe(path.parent)
        for path in configs
        if os.path.isfile(path)
        and not any(
            part.startswith(".") for part in path.relative_to(folder).parts
        )
    ]


def _describe(folder: Path) -> Listed:
    stored = stored_adapter.find_stored(folder)
    size = sum(
        path.stat().st_size
        for path in folder.iterdir()
        if path.suffix in _SUFFIXES and os.path.isfile(path)
    )
    describe = {"tf_adapters": _ours, "adapterhub": _adapterhub, "peft": _peft}
    try:
        described = describe[stored.format](stored.config)
    except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
        raise AdapterError(
            f"{folder / adapter_folder.CONFIG_FILE} is damaged: "
            f"{shown(error)}. Copy it again from where it was trained, or "
            "remove it."
        ) from error
    return Listed(
        folder=folder,
        format=stored.format,
        size=size,
        **{key: cut(value) for key, value in described.items()},
    )


def _ours(config: dict[str, Any]) -> dict[str, Any]:
    details = config["details"]
    metrics = details.get("metrics") or details.get("validation") or {}
    return {
        "task": details.get("task", "-"),
        "method": config["method"]["name"],
        "metrics": _text(metrics),
        "encoder": config["encoder"]["name"],
    }


def _text(metrics: Any) -> str:
    # `save_adapter` writes any details that a program gives.
    if not isinstance(metrics, dict):
        return str(metrics)
    found = [
        f"{name} {value:.4g}"
        for name, value in metrics.items()
        if isinstance(value, int | float)
    ]
    return ", ".join(found) or "-"


def _adapterhub(config: dict[str, Any]) -> dict[str, Any]:
    encoder = config.get("model_name") or config.get("model_type")
    return {
        "task": config.get("name") or "-",
        "method": (config["config"] or {}).get("architecture") or "bottleneck",
        "encoder": encoder or "-",
    }


def _peft(config: dict[str, Any]) -> dict[str, Any]:
    return {
        "task": config.get("task_type") or "-",
        "method": config["peft_type"],
        "encoder": config.get("base_model_name_or_path") or "-",
    }
