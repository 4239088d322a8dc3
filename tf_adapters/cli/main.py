"""Runs a command: resolves its settings and calls the function for its mode."""

from __future__ import annotations

from collections.abc import Iterable
import dataclasses
import os
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli import encode as cli_encode
from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli import eval as cli_eval
from tf_adapters.cli import export as cli_export
from tf_adapters.cli import option_checks
from tf_adapters.cli import predict as cli_predict
from tf_adapters.cli import run_settings
from tf_adapters.cli import study as cli_study
from tf_adapters.cli import train as cli_train
from tf_adapters.common import keras_backend
from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.config import plugins
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.runs import remote_folder
from tf_adapters.runs import task_data
from tf_adapters.text import defaults

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


def run_command(
    flag_layer: dict[str, Any], options: Any, texts: Any = ()
) -> Any:
    """Runs a command and returns the exit status.

    Args:
        flag_layer: Nested dict of the settings that flags set.
        options: Object with `mode`, `model_dir`, `config_file`,
            `params_override`, `adapters`, `format`, `precision`, `input`,
            `column`, `output`, `overwrite`, `glue_submission`, `list`,
            `plugin`, `study_processes`, and the options of a study.
        texts: List of the texts of one example to predict, instead of `input`.
            Default: none.

    Returns:
        0 on success, 1 after a user error or a failed run of a study, 75 after
        SIGTERM if the same command can resume the work, or 130 after Ctrl-C.
    """
    return cli_errors.exit_status(_run, flag_layer, options, texts)


def _run(flag_layer: dict[str, Any], options: Any, texts: Any) -> int:
    if not options.study:
        use_backend(flag_layer, options)
    plugins.load_plugins(options.plugin)
    if options.list:
        from tf_adapters.cli import lists

        print(lists.TABLES[options.list](), flush=True)
        return 0
    option_checks.check_options(options)
    flag_layer = cli_export.without_file_precision(flag_layer, options)
    if options.study:
        return cli_study.run_study_of_options(options, flag_layer)
    if cli_export.is_of_many_tasks(options):
        cli_export.export_many_tasks(flag_layer, options)
        return 0
    if not texts:
        option_checks.check_input(options)
    config, model_dir = _resolve(flag_layer, options)
    if texts:
        cli_predict.answer_text(config, model_dir, texts)
    else:
        _MODES[options.mode](config, model_dir, options)
    return 0


def use_backend(flag_layer: dict[str, Any], options: Any) -> None:
    """Selects the backend of Keras that a command's settings name.

    This must happen before Keras is imported, and so before most checks. Runs
    of a study are commands of their own.
    """
    layers = layers_of_command(flag_layer, options)
    named = [layer["backend"] for layer in layers if "backend" in layer]
    name = named[-1] if named else "tensorflow"
    # Other values are refused with the other settings.
    if name not in keras_backend.BACKENDS:
        return
    if name == "jax" and options.mode not in _MODES_OF_JAX:
        raise ConfigError(
            f"--mode={options.mode} needs TensorFlow, also for runs that JAX "
            "has trained. Leave --backend out."
        )
    keras_backend.use_backend(name)


def layers_of_command(flag_layer: dict[str, Any], options: Any) -> list[Any]:
    """Returns the settings that a command gives, as a list of nested dicts.

    Later ones override earlier ones. The order is: the configuration file, the
    values of `params_override`, the settings that flags set (`flag_layer`).
    """
    layers = []
    if options.config_file:
        path = Path(options.config_file).expanduser()
        layers.append(resolve.load_yaml(path))
    layers += map(resolve.parse_override, options.params_override)
    return [*layers, flag_layer]


def _resolve(flag_layer: dict[str, Any], options: Any) -> tuple[Config, Any]:
    """Returns the `Config` of a command and the path of its run folder.

    For a finished run, starts from the settings in its folder. See
    `run_command` for the arguments.
    """
    given = options.model_dir and remote_folder.local(options.model_dir)
    layers = layers_of_command(flag_layer, options)
    _check_stack(layers)
    if options.mode in ("train", "train_and_eval"):
        option_checks.check_keeps_file(options.config_file, given)
        layers = defaults.with_short_run(layers)
    if options.mode in ("eval", "predict", "encode", "export"):
        from tf_adapters.runs import hub_members

        hub_members.fetch_named(layers)
        layers.insert(0, _saved_config(given, options))
        layers[0] = presets.with_name_of_command(layers)
        hub_members.check_are_here(resolve.combine(*layers))
    config = resolve.combine(*layers)
    config = resolve.with_absolute_paths(
        _with_encoder_of_adapters(config, layers)
    )
    option_checks.check_table_flags(flag_layer, config.data.file is not None)
    model_dir = given or Path(
        f"runs/{config.task}_{presets.preset_name(layers)}_{config.seed}"
    )
    if options.mode in ("train", "train_and_eval"):
        # Check this before importing Keras, which takes seconds.
        for one in config_task.by_task(config).values():
            task_data.check_data_exists(one)
        return resolve.build_method(config), model_dir
    _check_one_task(config, model_dir, options.mode)
    config = resolve.build_method(config)
    run_settings.check_settings_of_run(config, model_dir, options.mode)
    return config, model_dir


def _check_stack(layers: Iterable[dict[str, Any]]) -> None:
    # A path on the command line must exist. A run's saved path need not exist,
    # because loading finds an adapter that has moved.
    for folder in filter(None, (layer.get("stack_on") for layer in layers)):
        is_there = Path(str(folder)).expanduser().is_dir()
        if "://" not in str(folder) and not is_there:
            raise ConfigError(
                f"--stack_on={cut(folder)}: there is no such folder."
            )


def _with_encoder_of_adapters(
    config: Config, layers: Iterable[dict[str, Any]]
) -> Config:
    """Sets a configuration's encoder to the encoder of its trained adapters.

    Returns `config` unchanged if a dict in `layers` sets `encoder`, or if
    `config` names no adapters in the format of this library.
    """
    folders = config.method.get("adapters") or (
        config.stack_on and [config.stack_on]
    )
    is_named = any("encoder" in layer for layer in layers)
    # Values of other types are refused later, when the method is built.
    if is_named or not folders or not isinstance(folders, list | tuple):
        return config
    from tf_adapters.interop import formats
    from tf_adapters.interop import stored_adapter

    stored = stored_adapter.find_stored(os.path.expanduser(str(folders[0])))
    if stored.format != formats.OURS:
        # We do not know the encoder names that other libraries use.
        return config
    name = stored.config["encoder"]["name"]
    return dataclasses.replace(config, encoder=name)


def _check_one_task(config: Config, model_dir: Path, mode: str) -> None:
    tasks = list(config_task.by_task(config))
    if len(tasks) > 1:
        raise ConfigError(
            f"{model_dir} is a run of the tasks {', '.join(tasks)}. "
            f"--mode={mode} needs the folder of one of them: "
            f"--model_dir={model_dir / tasks[0]}"
        )


def _near_run(model_dir: Path) -> str:
    """Returns a question that suggests a run folder with a similar name.

    Returns "" if there is no such folder.
    """
    runs = model_dir.parent.glob("*/config.yaml")
    return did_you_mean(model_dir, [str(path.parent) for path in runs])


def _saved_config(model_dir: Path, options: Any) -> dict[str, Any]:
    if not model_dir:
        raise ConfigError(
            f"--mode={options.mode} needs --model_dir: the folder of a "
            "finished run."
        )
    path = model_dir / "config.yaml"
    if not path.exists():
        raise ConfigError(
            f"{cut(options.model_dir)} is not a run folder: it has no "
            f"config.yaml.{_near_run(model_dir)} If there is no run yet, train "
            f"one with --model_dir={cut(options.model_dir)}."
        )
    return resolve.load_for_one_machine(path)


_MODES = {
    "train_and_eval": cli_train.train_command,
    "train": cli_train.train_command,
    "eval": cli_eval.eval_command,
    "predict": cli_predict.predict_file,
    "encode": cli_encode.encode_file,
    "export": cli_export.export_command,
}
_MODES_OF_JAX = ("train_and_eval", "train", "eval")
