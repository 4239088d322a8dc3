"""Combines layers of settings into the configuration of a run.

Later layers override earlier ones: the defaults of `Config`, then
`official_configs/methods/<method>.yaml`, then `--config_file`, then
`--params_override` and the short flags. The result is saved with the run before
its first step.
"""

import dataclasses
import os
from pathlib import Path
from typing import Any

import yaml

from tf_adapters.common import dataclass_config
from tf_adapters.common import settings_text
from tf_adapters.common.dataclass_config import merge
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.common.settings_text import load_yaml
from tf_adapters.common.text_files import replace_text
from tf_adapters.config import presets
from tf_adapters.config import setting_checks
from tf_adapters.config import task as config_task
from tf_adapters.config.settings import CLUSTERS
from tf_adapters.config.settings import FILES
from tf_adapters.config.settings import Config

# The folder in a run folder for tables that the user passed in memory. Each is
# stored as a file.
TABLES = "tables"


def resolve_config(*layers: Any) -> Config:
    """Combines layers of settings into a `Config`, and creates its method.

    Args:
        *layers: Nested dicts with the fields of `Config`. Later ones override
            earlier ones. `method` is a preset's name or a dict with `name` and
            hyperparameters.

    Raises:
        ConfigError: If a key is unknown or a value has the wrong type.
    """
    return build_method(combine(*layers))


def combine(*layers: Any) -> Config:
    """Combines layers of settings into a `Config`, with `method` as a dict.

    The method's settings are not checked yet; see `build_method`. Does not
    import Keras, which takes seconds.

    Args:
        *layers: See `resolve_config`.

    Raises:
        ConfigError: If a key is unknown or a value is invalid.
    """
    merged = {}
    layers = tuple(map(without_empty_sections, layers))
    for layer in config_task.with_last_file(presets.with_preset(layers)):
        merged = merge(merged, config_task.with_task_of_file(layer, merged))
    config = dataclass_config.from_dict(
        Config, config_task.with_name_of_tasks(merged)
    )
    setting_checks.check_setting_values(config)
    return config


def without_empty_sections(layer: dict[str, Any]) -> dict[str, Any]:
    """Returns a layer without sections that are empty in a YAML file.

    Such a section is `None`, which would replace all earlier settings of it.

    Raises:
        ConfigError: If a section, such as `train`, is another value.
    """
    kept = dict(layer)
    for field in dataclasses.fields(Config):
        if not dataclasses.is_dataclass(field.type) or field.name not in layer:
            continue
        if layer[field.name] is None:
            del kept[field.name]
        elif not isinstance(layer[field.name], dict):
            raise ConfigError(
                f"`{field.name}` must be a mapping of settings. Received: "
                f"{shown(layer[field.name])}"
            )
    return kept


def build_method(config: Config) -> Config:
    """Creates the method object of a configuration that `combine` returned.

    Returns a copy in which `method` is this object instead of a dict.

    Raises:
        ConfigError: If a setting of the method is unknown or invalid.
    """
    try:
        method = _build(config.method, "method.")
    except ValueError as error:
        raise ConfigError(str(error)) from error
    return dataclasses.replace(config, method=method)


def method_of_preset(name: str) -> Any:
    """Creates the `Method` of a preset, including its nested methods.

    Raises:
        ConfigError: If no preset has this name.
    """
    return _build_within(name, "method.")


def _build(options: Any, prefix: str) -> Any:
    # Imported here, because it imports Keras.
    from tf_adapters import methods

    options = dict(options)
    presets.import_method(options["name"])
    cls = methods.METHODS[options.pop("name")]
    for key in {"adapter", "parts"} & set(options):  # Nested methods.
        options[key] = _build_within(options[key], f"{prefix}{key}.")
    return dataclass_config.from_dict(cls, options, prefix)


def _build_within(value: Any, prefix: str) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_build_within(part, prefix) for part in value)
    if isinstance(value, str):
        value = {"name": value}
    return _build(presets.complete(value), prefix)


def parse_override(text: str) -> dict[str, Any]:
    """Parses `"a.b=value,c=value,..."` into a nested dict."""
    values = {}
    for layer in settings_text.parse_items(text):
        values = merge(values, presets.with_method_as_dict(layer))
    return values


def with_absolute_paths(config: Config) -> Config:
    """Returns a configuration with absolute paths, valid from any folder.

    An encoder that is not the path of a folder is left unchanged.
    """
    data = dataclasses.replace(
        config.data,
        data_dir=_absolute(config.data.data_dir),
        task_file=_absolute(config.data.task_file),
        file=_absolute(config.data.file),
        validation_file=_absolute(config.data.validation_file),
        test_file=_absolute(config.data.test_file),
    )
    encoder = config.encoder
    # `load_encoder` never treats this name as a folder.
    if encoder != "minilm" and os.path.isdir(encoder):
        encoder = _absolute(encoder)
    return dataclasses.replace(
        config,
        data=data,
        encoder=encoder,
        init_adapter=_absolute(config.init_adapter),
        stack_on=_absolute(config.stack_on),
        language_adapters=config.language_adapters
        and {k: _absolute(v) for k, v in config.language_adapters.items()},
        method=_with_absolute_adapters(config.method),
    )


def _with_absolute_adapters(method: Any) -> Any:
    # If `method` is a dict, the method object is not created yet.
    if isinstance(method, dict) or not method.adapters:
        return method
    folders = tuple(map(_absolute, method.adapters))
    return dataclasses.replace(method, adapters=folders)


def _absolute(path: str | None) -> str | None:
    # Addresses, such as `hf://owner/name`, are valid from anywhere.
    if path is None or "://" in str(path):
        return path
    return str(Path(path).expanduser().absolute())


def save_config(config: Config, path: str | Path) -> None:
    """Writes a configuration as YAML, for `load_config`."""
    values = to_dict(config)
    if config.encoder == _sibling_encoder(path):
        values["encoder"] = SIBLING_ENCODER
    replace_text(path, yaml.safe_dump(values, sort_keys=False))


def load_config(path: str | Path) -> Config:
    """Reads a configuration that `save_config` wrote.

    Raises:
        ConfigError: If a setting is wrong. Names the file.
    """
    saved = load_saved(path)
    try:
        return resolve_config(saved)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def load_saved(path: str | Path) -> dict[str, Any]:
    """Reads the settings that `save_config` wrote, as nested dicts."""
    values = load_yaml(path)
    # Older runs stored where tokens were cached and where batches were made.
    # These settings do not change results.
    if isinstance(values.get("data"), dict):
        for name in ("cache_dir", "service"):
            values["data"].pop(name, None)
        values["data"] |= _moved_tables(values["data"], Path(path).parent)
    if values.get("encoder") == SIBLING_ENCODER:
        values["encoder"] = _sibling_encoder(path)
    return values


def _moved_tables(data: dict[str, Any], folder: Path) -> dict[str, str]:
    """Returns the paths of tables that were moved along with their run.

    A run stores the tables that were passed in memory in its folder.
    """
    own = folder.absolute()
    # A search stores the tables of all its trials.
    search = [own.parents[1]] if own.parent.name == "trials" else []
    moved = {}
    for name in (setting.removeprefix("data.") for setting in FILES):
        path = Path(str(data.get(name)))
        if path.parent.name != TABLES:
            continue
        # Another run may have taken the old path, so these come first.
        for place in (own, *search):
            if os.path.isfile(place / TABLES / path.name):
                moved.setdefault(name, str(place / TABLES / path.name))
    return moved


def load_for_one_machine(path: str | Path) -> dict[str, Any]:
    """Reads a configuration as `load_saved` does, for use on one machine.

    The strategy of a run on several machines or a TPU becomes `"one_device"`.
    """
    values = load_saved(path)
    if values.get("distribution_strategy") in CLUSTERS:
        values |= {"distribution_strategy": "one_device", "tpu": ""}
    return values


# Tasks that are trained together share an encoder. It is stored next to their
# run folders and moves with them.
SIBLING_ENCODER = "../encoder"


def _sibling_encoder(path: str | Path) -> str:
    return str(Path(path).absolute().parents[1] / "encoder")


def to_dict(config: Config) -> dict[str, Any]:
    """Returns a configuration as nested dicts of values that YAML can store."""
    from tf_adapters import methods

    values = dataclasses.asdict(dataclasses.replace(config, method=None))
    method = methods.to_config(config.method)
    values["method"] = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in method.items()
    }
    return values
