"""Methods by name: the presets in `official_configs/methods`, as settings."""

import functools
import importlib
import os
from pathlib import Path

from tf_adapters.common.checks import check_known
from tf_adapters.common.dataclass_config import load_yaml
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.config import plugins

_PACKAGE = Path(__file__).parents[1]
# A wheel has the folder inside the package, a checkout has it beside.
OFFICIAL_CONFIGS = next(
    folder / "official_configs"
    for folder in (_PACKAGE, _PACKAGE.parent)
    if (folder / "official_configs").is_dir()
)
PRESETS = OFFICIAL_CONFIGS / "methods"
DEFAULT = "houlsby"
# The key of a preset, no setting, that names a module; see `import_method`.
_MODULE = "module"


def with_preset(layers):
    """Returns layers of settings, that of the method they name before them.

    Args:
        layers: Nested dicts, later ones winning. `method` is a preset's name,
            or a dict with `name` and hyper-parameters.

    Returns:
        List of nested dicts. The name that is left is that of the method, and
        only the first one, the preset, has it. What a layer says of another
        method, by its name, is left out.

    Raises:
        ConfigError: If there is no such preset.
    """
    name = preset_name(layers)
    complete = [_load(name)]
    for layer in layers:
        complete.append(_on_top(with_method_as_dict(layer), complete, name))
    return complete


def preset_name(layers):
    """Returns the preset that layers of settings name last."""
    for layer in reversed(layers):
        method = with_method_as_dict(layer).get("method", {})
        if "name" in method:
            return method["name"]
    return DEFAULT


def with_name_of_command(layers):
    """Returns the first layer, a run's, as if it named the command's preset.

    A run says its method, and a command perhaps a preset of that method.
    """
    run, name = layers[0], preset_name(layers)
    method = with_method_as_dict(run).get("method", {})
    if method.get("name") != _load(name)["method"]["name"]:
        return run
    return {**run, "method": {**method, "name": name}}


def with_method_as_dict(layer):
    """Returns a layer whose `method`, if any, is a dict; its adapter too."""
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


def complete(method):
    """Returns a method's settings on top of those of the preset it names.

    Args:
        method: Dict with the `name` of a preset, and settings.

    Raises:
        ConfigError: If it is no such dict, or there is no such preset.
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


def _on_top(layer, earlier, name):
    if "method" not in layer:
        return layer
    method = dict(layer["method"])
    if method.pop("name", name) != name:
        # As of every mapping whose `name` changes, nothing of it stays.
        method = {}
    # Whoever says how wide wins over who said before how much narrower.
    if "units" in method and any(
        "reduction_factor" in layer.get("method", {}) for layer in earlier
    ):
        method.setdefault("reduction_factor", None)
    return {**layer, "method": method}


def import_method(name):
    """Imports the module that registers a preset's method, if it names one.

    Methods in `tf_adapters.methods` need none: that package imports them all.

    Args:
        name: Name of a preset, or of a method without one.
    """
    if name in preset_names() and _MODULE in _read(name):
        importlib.import_module(_read(name)[_MODULE])


def preset_names():
    """Returns the names that `--method` takes."""
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def _load(name):
    # Not a path: names that climb out of the folder are unknown, too.
    known = isinstance(name, str) and Path(name).name == name
    if known and os.path.isfile(PRESETS / f"{name}.yaml"):
        return {k: v for k, v in _read(name).items() if k != _MODULE}
    # Here, not above: Keras comes with it.
    from tf_adapters import methods

    known = sorted({*preset_names(), *methods.METHODS})
    check_known("method", name, known, ConfigError, plugins.HINT)
    return {"method": {"name": name}}


@functools.cache
def _read(name):
    return load_yaml(PRESETS / f"{name}.yaml")
