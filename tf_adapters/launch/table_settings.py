"""Turns the arguments of `train` and `tune` into settings of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.config import presets
from tf_adapters.config import resolve as config_resolve
from tf_adapters.runs import remote_folder
from tf_adapters.runs import task_data
from tf_adapters.text import defaults

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.launch.tables import TableFiles


# Maps the names of arguments to settings.
_SETTINGS = {
    "encoder": "encoder",
    "seed": "seed",
    "text": "data.text",
    "label": "data.label",
    "head": "data.head",
    "epochs": "train.epochs",
    "learning_rate": "train.learning_rate",
    "batch_size": "train.batch_size",
    "max_length": "data.max_length",
}


def layers_of_arguments(
    settings: dict[str, Any] | None,
    method: methods.Method | str | None,
    **arguments: Any,
) -> list[dict[str, Any]]:
    """Converts the arguments of `train` or `tune` to a list of layers.

    A layer is a nested dict of settings. Later layers override earlier ones.

    Args:
        settings: Dict of settings, nested or with dotted names, or `None`.
        method: Name of a method or a preset, a `Method`, or `None` to set no
            method.
        **arguments: Arguments that have a setting, such as `epochs`. A value
            of `None` sets nothing.

    Raises:
        ConfigError: If `settings` or `method` has the wrong type, or
            `settings` sets what an argument sets to another value.
    """
    if not isinstance(settings, dict | None):
        raise ConfigError(
            "`settings` must be a dict of settings, such as "
            '{"train.precision": "mixed_bfloat16"}. Received: '
            f"{shown(settings)}"
        )
    given = {_SETTINGS[k]: v for k, v in arguments.items() if v is not None}
    layers = [_nested(settings or {}), _nested(given)]
    if method is not None:
        layers.append({"method": _named(method)})
    _check_overridden(*layers)
    return layers


def _check_overridden(
    settings: dict[str, Any], *arguments: dict[str, Any]
) -> None:
    """Raises a `ConfigError` if arguments override one of the settings.

    Args:
        settings: Nested dict of settings.
        *arguments: Nested dicts of the settings that arguments set.
    """
    given = dataclass_config.flatten(presets.with_method_as_dict(settings))
    for layer in arguments:
        for key, value in dataclass_config.flatten(layer).items():
            if _plain(key, given.get(key, value)) != _plain(key, value):
                names = {name: argument for argument, name in _SETTINGS.items()}
                raise ConfigError(
                    f"`settings` sets `{key}` to {shown(given[key])}, but the "
                    f"argument `{names.get(key, 'method')}` sets it to "
                    f"{shown(value)}. Set it with this argument only."
                )


def _plain(key: str, value: Any) -> Any:
    """Returns a value in the one form in which two can be compared."""
    if key == _SETTINGS["text"] and isinstance(value, str):
        return [value]
    if key == _SETTINGS["label"]:
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def _nested(settings: dict[str, Any]) -> dict[str, Any]:
    """Converts a dict of settings with dotted names to a nested dict."""
    nested = {}
    for name, value in settings.items():
        for part in reversed(str(name).split(".")):
            value = {part: value}
        nested = dataclass_config.merge(nested, value)
    return nested


def _named(method: methods.Method | str) -> dict[str, Any]:
    if isinstance(method, str):
        return {"name": method}
    if isinstance(method, methods.Method):
        return methods.to_config(method)
    raise ConfigError(
        "`method` must be the name of a method, or a method such as "
        f"methods.LoRA(rank=4). Received: {shown(method)}"
    )


def config_and_folder(
    layers: list[dict[str, Any]],
    source: TableFiles,
    model_dir: str | os.PathLike[str] | None,
) -> tuple[Config, Path]:
    """Returns the `Config` of a run on a table and the path of its folder.

    Args:
        layers: See `layers_of_arguments`.
        source: `TableFiles` of the table.
        model_dir: Path or address of the run folder. If `None`, it is
            `runs/<table>_<method>_<seed>`.

    Raises:
        ConfigError: If a setting is wrong, or the method cannot train an
            adapter on a single table.
    """
    layers = defaults.with_short_run([*layers, source.layer])
    config = config_resolve.combine(*layers)
    config = config_resolve.with_absolute_paths(config)
    task_data.check_data_exists(config)
    config = config_resolve.build_method(config)
    check_method(config)
    name = f"{config.task}_{presets.preset_name(layers)}_{config.seed}"
    if model_dir is None:
        return config, Path("runs", name)
    return config, remote_folder.local(str(model_dir))


def check_method(config: Config) -> None:
    """Raises a `ConfigError` if a method cannot train on a single table."""
    method = config.method
    if method.own_training() is not None:
        raise ConfigError(
            f"`{methods.name_of(method)}` trains a network of its own, which "
            "is not a text model. Train it with `tf-adapters train`."
        )
    if isinstance(method, methods.Fusion) and not method.adapters:
        raise ConfigError(
            "Name the trained adapters that are fused: "
            'method=methods.Fusion(adapters=("runs/a", "runs/b")), or in a '
            "command --params_override=method.adapters=[runs/a,runs/b]."
        )
