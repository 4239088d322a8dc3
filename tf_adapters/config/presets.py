"""Reads the presets of methods in `official_configs/methods`."""

from collections.abc import Sequence
import functools
import importlib
import os
from pathlib import Path
from typing import Any

from tf_adapters.common import dataclass_config
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.common.settings_text import load_yaml
from tf_adapters.config import plugins

_PACKAGE = Path(__file__).parents[1]
# In a wheel the folder is inside the package, in a checkout next to it.
OFFICIAL_CONFIGS = next(
    folder / "official_configs"
    for folder in (_PACKAGE, _PACKAGE.parent)
    if (folder / "official_configs").is_dir()
)
PRESETS = OFFICIAL_CONFIGS / "methods"
DEFAULT = "houlsby"
# Key in a preset for the module that registers its method; see `import_method`.
# It is not a setting.
_MODULE = "module"


def with_preset(layers: Sequence[dict[str, Any]]) -> list[dict[Any, Any]]:
    """Adds the preset of the method as the first layer of settings.

    Args:
        layers: Nested dicts. Later ones override earlier ones. `method` is a
            preset's name, or a dict with `name` and hyperparameters.

    Returns:
        List of nested dicts. Only the first dict, the preset, has the method's
        `name`. Settings for a method with another name are dropped.

    Raises:
        ConfigError: If there is no such preset.
    """
    name = preset_name(layers)
    complete = [_load(name)]
    for layer in layers:
        complete.append(_on_top(with_method_as_dict(layer), complete, name))
    return complete


def preset_name(
    layers: Sequence[dict[str, Any]], default: Any = DEFAULT
) -> Any:
    """Returns the name of the method or preset that layers of settings select.

    The name is taken from the last layer that has one.

    Args:
        layers: See `with_preset`.
        default: Returned if no layer has a name. Defaults to `"houlsby"`.
    """
    for layer in reversed(layers):
        method = with_method_as_dict(layer).get("method", {})
        if "name" in method:
            return method["name"]
    return default


def method_of(
    layers: Sequence[dict[str, Any]], default: Any = DEFAULT
) -> dict[str, Any]:
    """Returns the method that layers of settings select, with its settings.

    Args:
        layers: See `with_preset`.
        default: See `preset_name`.

    Returns:
        Dict with the `name` of the preset, and the settings in `layers`.
    """
    name = preset_name(layers, default)
    merged: dict[str, Any] = {}
    for layer in with_preset([{"method": {"name": name}}, *layers])[1:]:
        merged = dataclass_config.merge(merged, layer.get("method", {}))
    return {**merged, "name": name}


def with_name_of_command(layers: Sequence[dict[str, Any]]) -> Any:
    """Returns a run's settings, with the preset that the command names.

    A run stores the name of its method, and the command can name a preset of
    the same method. That name then replaces the method's name in the run's
    settings. If the command names a preset of another method, the run's
    settings are returned unchanged.

    Args:
        layers: Nested dicts: the run's settings, then the command's layers.
    """
    run, name = layers[0], preset_name(layers)
    method = with_method_as_dict(run).get("method", {})
    if method.get("name") != _load(name)["method"]["name"]:
        return run
    return {**run, "method": {**method, "name": name}}


def with_method_as_dict(layer: dict[str, Any]) -> dict[str, Any]:
    """Converts methods that are given by name to dicts with the key `name`.

    This affects `method` and `method.adapter`, if the layer of settings has
    them.

    Raises:
        ConfigError: If `method` is neither a name nor a dict.
    """
    method = layer.get("method", {})
    if isinstance(method, str):
        return {**layer, "method": {"name": method}}
    if not isinstance(method, dict):
        raise ConfigError(
            "`method` must be a name, or a mapping with `name` and settings. "
            f"Received: {shown(method)}"
        )
    if isinstance(method.get("adapter"), str):
        method = {**method, "adapter": {"name": method["adapter"]}}
        return {**layer, "method": method}
    return layer


def complete(method: Any) -> dict[Any, Any]:
    """Adds the settings of a method's preset to the method's own settings.

    Args:
        method: Dict with the `name` of a preset, and settings that override
            the preset's settings.

    Raises:
        ConfigError: If `method` is not a dict with a `name`, or no preset has
            this name.
    """
    if not isinstance(method, dict) or "name" not in method:
        raise ConfigError(
            "`method.adapter` must be a method's name, or a mapping with "
            f"`name` and settings. Received: {shown(method)}"
        )
    preset = _load(method["name"])
    import_method(method["name"])
    own = _on_top({"method": method}, [preset], method["name"])["method"]
    return {**preset["method"], **own}


def _on_top(
    layer: dict[str, Any], earlier: list[dict[str, Any]], name: str
) -> dict[str, Any]:
    if "method" not in layer:
        return layer
    method = dict(layer["method"])
    if method.pop("name", name) != name:
        # A mapping whose `name` changes is replaced as a whole.
        method = {}
    # `units` overrides a `reduction_factor` from an earlier layer.
    if "units" in method and any(
        "reduction_factor" in layer.get("method", {}) for layer in earlier
    ):
        method.setdefault("reduction_factor", None)
    return {**layer, "method": method}


def import_method(name: str) -> None:
    """Imports the module that registers a preset's method, if it names one.

    Presets of methods in `tf_adapters.methods` name no module, because that
    package imports all its methods.

    Args:
        name: Name of a preset, or of a method that has no preset.
    """
    if name in preset_names() and _MODULE in _read(name):
        importlib.import_module(_read(name)[_MODULE])


def preset_names() -> list[str]:
    """Returns the sorted names of all presets, for `--method`."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def _load(name: Any) -> dict[Any, Any]:
    # A path is rejected as a name, so that no file outside the folder is read.
    known = isinstance(name, str) and Path(name).name == name
    if known and os.path.isfile(PRESETS / f"{name}.yaml"):
        return {k: v for k, v in _read(name).items() if k != _MODULE}
    # Imported here, because it imports Keras.
    from tf_adapters import methods

    known = sorted({*preset_names(), *methods.METHODS})
    check_known("method", name, known, ConfigError, plugins.HINT)
    return {"method": {"name": name}}


@functools.cache
def _read(name: str) -> Any:
    return load_yaml(PRESETS / f"{name}.yaml")
