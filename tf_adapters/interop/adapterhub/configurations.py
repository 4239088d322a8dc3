"""Converts methods to AdapterHub's configurations and back; see `table`."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop.adapterhub import keys
from tf_adapters.interop.adapterhub import names
from tf_adapters.interop.adapterhub import table
from tf_adapters.interop.method_table import as_number
from tf_adapters.methods.support import bottleneck_slots

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.interop.tensor_names import TensorName


def read_method(
    config: dict[str, Any],
    width: int,
    version: tuple[int, ...],
    source: str | Path = "The configuration",
) -> methods.Method:
    """Returns the method that one of AdapterHub's configurations describes.

    Args:
        config: Dict, the value of `config` in `adapter_config.json`.
        width: Width of the encoder.
        version: Tuple of integers, the version of `adapters`. Empty for files
            without a version.
        source: Path of the file, for errors.

    Raises:
        AdapterError: If tf_adapters has no equivalent method.
    """
    kind = config.get("architecture")
    if kind == "union":
        return methods.Union(
            tuple(
                read_method(part, width, version, source)
                for part in config["configs"]
            )
        )
    if kind not in table.ENTRIES:
        raise AdapterError(
            f"tf_adapters has no method `{cut(kind)}` of AdapterHub."
        )
    config = _in_todays_keys(config, version)
    if kind is None:
        config["reduction_factor"] = _units(config, width)
    entry = next(e for e in table.ENTRIES[kind] if e.fits(config))
    method = entry.read(config, source)
    if not config.get("inv_adapter"):
        return method
    factor = float(config["inv_adapter_reduction_factor"])
    coupling = methods.Invertible(factor, method.activation)
    return methods.Union((method, coupling))


def _in_todays_keys(
    given: dict[str, Any], version: tuple[int, ...]
) -> dict[str, Any]:
    """Converts a configuration to the keys and meanings of `adapters` 1.3.0.

    `version` is the version that wrote the configuration; see `read_method`.
    """
    config = {k: v for k, v in given.items() if k not in keys.OLD_KEYS}
    if old := given.get("invertible_adapter"):
        config["inv_adapter"] = old["block_type"]
        config["inv_adapter_reduction_factor"] = old["reduction_factor"]
    if not version and str(config.get("non_linearity")).lower() == "gelu":
        # In files without a version, this means the tanh approximation.
        config["non_linearity"] = "gelu_new"
    is_lora = config.get("architecture") == "lora"
    if is_lora and (0,) <= version < (1, 1, 0):
        # These versions ignored alpha: the scale was always 1. In
        # adapter-transformers it was alpha / r.
        config["alpha"] = config.get("r", keys.LORA["r"])
    if config.get("is_parallel"):
        # The input of a parallel adapter is not normalized.
        config["original_ln_before"] = False
    return config


def _units(config: dict[str, Any], width: int) -> int:
    factor = config.get("reduction_factor", keys.BOTTLENECK["reduction_factor"])
    factors = list(factor.values()) if isinstance(factor, dict) else [factor]
    units = {max(1, int(width // float(one))) for one in factors}
    if len(units) > 1:
        raise AdapterError(
            "Its bottlenecks have several widths, but in tf_adapters all have "
            f"the same: `reduction_factor: {cut(factor)}`."
        )
    return units.pop()


def write_method(method: methods.Method, width: int) -> dict[str, Any]:
    """Returns AdapterHub's configuration of a method.

    Args:
        method: `Method`.
        width: Width of the encoder.

    Raises:
        AdapterError: If AdapterHub has no such method.
    """
    if isinstance(method, methods.Union):
        return _write_union(method, width)
    entry = table.BY_METHOD.get(type(method))
    if entry is None:
        raise _refusal(f"the method `{methods.name_of(method)}`")
    if not hasattr(method, "reduction_factor"):
        return entry.write(method, "AdapterHub")
    units = bottleneck_slots.width_of_bottleneck(method, width)
    # AdapterHub truncates width / factor; the 0.5 makes the result `units`.
    factor = width / (units + 0.5) if width % units else width // units
    method = dataclasses.replace(method, units=units, reduction_factor=None)
    return entry.write(method, "AdapterHub") | {"reduction_factor": factor}


def _refusal(what: str) -> AdapterError:
    return AdapterError(f"AdapterHub's format cannot store {what}.")


def _write_union(method: methods.Union, width: int) -> dict[str, Any]:
    parts = {type(part): part for part in method.parts}
    if len(parts) < len(method.parts):
        raise _refusal("two parts of one kind in a union")
    coupling = parts.pop(methods.Invertible, None)
    configs = [write_method(part, width) for part in parts.values()]
    if coupling is not None:
        bottleneck = next((c for c in configs if "mh_adapter" in c), None)
        wanted = keys.NON_LINEARITIES[coupling.activation]
        if bottleneck is None or bottleneck["non_linearity"] != wanted:
            raise _refusal(
                "an invertible adapter without a bottleneck of its activation"
            )
        bottleneck["inv_adapter"] = "nice"
        bottleneck["inv_adapter_reduction_factor"] = as_number(
            coupling.reduction_factor
        )
    if len(configs) == 1:
        return configs[0]
    return {"architecture": "union", "configs": configs}


def tensor_names(
    method: methods.Method, place: names.Place
) -> list[TensorName]:
    """Returns the `TensorName`s of all tensors that a method trains.

    Args:
        method: `Method` that AdapterHub has; see `write_method`.
        place: `names.Place` with the encoder and the adapter's name.
    """
    if isinstance(method, methods.Union):
        return [n for p in method.parts for n in tensor_names(p, place)]
    if isinstance(method, methods.Invertible):
        return names.coupling(place)
    return table.BY_METHOD[type(method)].tensor_names(method, place)
