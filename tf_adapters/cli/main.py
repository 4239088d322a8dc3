"""One function for each mode of the command; errors become sentences."""

import dataclasses
import json
from pathlib import Path

from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli import option_checks
from tf_adapters.cli import run_settings
from tf_adapters.cli import summary
from tf_adapters.cli import train as cli_train
from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.config import plugins
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import prediction_files
from tf_adapters.data.rows import splits
from tf_adapters.runs import pretraining_task
from tf_adapters.runs import remote_folder


def run_command(flag_layer, options):
    """Runs what the flags ask for.

    Args:
        flag_layer: Nested dict of the settings that flags give.
        options: Object with `mode`, `model_dir`, `config_file`,
            `params_override`, `adapters`, `format`, `input`, `output`,
            `overwrite`,
            `glue_submission`, `list`, `plugin`, `study_processes`, and what
            `study.run` reads.

    Returns:
        Exit status: 0; 1 after a mistake of the user or a failed run of a
        study; 75 after SIGTERM, if the same command can go on; 130 after
        Ctrl-C.
    """
    return cli_errors.exit_status(_run, flag_layer, options)


def _run(flag_layer, options):
    plugins.load_plugins(options.plugin)
    if options.list:
        from tf_adapters.cli import lists

        print(lists.TABLES[options.list](), flush=True)
        return 0
    option_checks.check_options(options)
    if options.study:
        from tf_adapters.studies import study as study_lib

        return study_lib.run(options, flag_layer)
    if _is_of_many_tasks(options):
        _export_bank(flag_layer, options)
    else:
        config, model_dir = _resolve(flag_layer, options)
        _MODES[options.mode](config, model_dir, options)
    return 0


def _is_of_many_tasks(options):
    """Whether this is an export of adapters, and not of a fusion over them."""
    if options.mode != "export" or not options.adapters:
        return False
    given = options.model_dir and remote_folder.local(options.model_dir)
    return not (given and (given / "config.yaml").exists())


def _resolve(flag_layer, options):
    """Returns the configuration and the run folder."""
    option_checks.check_input(options)
    layers = []
    given = options.model_dir and remote_folder.local(options.model_dir)
    if options.config_file:
        layers.append(resolve.load_yaml(options.config_file))
    layers += map(resolve.parse_override, options.params_override)
    layers.append(flag_layer)
    _check_stack(layers)
    if options.mode in ("eval", "predict", "export"):
        from tf_adapters.runs import hub_members

        hub_members.fetch_named(layers)
        layers.insert(0, _saved_config(given, options))
        layers[0] = presets.with_name_of_command(layers)
        hub_members.check_are_here(resolve.combine(*layers))
    config = resolve.combine(*layers)
    config = resolve.with_absolute_paths(
        _with_encoder_of_adapters(config, layers)
    )
    model_dir = given or Path(
        f"runs/{config.task}_{presets.preset_name(layers)}_{config.seed}"
    )
    if options.mode in ("train", "train_and_eval"):
        # Before anything imports Keras, which takes seconds.
        for one in config_task.by_task(config).values():
            splits.check_data_exists(one)
        return resolve.build_method(config), model_dir
    _check_one_task(config, model_dir, options.mode)
    config = resolve.build_method(config)
    run_settings.check_settings(config, model_dir, options.mode)
    return config, model_dir


def _check_stack(layers):
    # That of a run may have moved, which its adapter knows; this one has not.
    for folder in filter(None, (layer.get("stack_on") for layer in layers)):
        if "://" not in str(folder) and not Path(str(folder)).is_dir():
            raise ConfigError(
                f"--stack_on={cut(folder)}: there is no such folder."
            )


def _with_encoder_of_adapters(config, layers):
    """Returns a configuration with the encoder of the adapters it names.

    That is what `encoder` is where no layer of settings says it.
    """
    folders = config.method.get("adapters") or (
        config.stack_on and [config.stack_on]
    )
    is_named = any("encoder" in layer for layer in layers)
    # Of another type it is refused when the method is built.
    if is_named or not folders or not isinstance(folders, list | tuple):
        return config
    from tf_adapters.common import adapter_folder
    from tf_adapters.interop import formats
    from tf_adapters.interop import hub
    from tf_adapters.interop import hub_address

    folder = str(folders[0])
    if hub_address.is_address(folder):
        folder = hub.pull(folder)
    if formats.format_of(folder):
        # Other libraries name no encoder that could be found here.
        return config
    adapter = adapter_folder.read_adapter_config(
        adapter_folder.find_adapter_folder(folder)
    )
    return dataclasses.replace(config, encoder=adapter["encoder"]["name"])


def _check_one_task(config, model_dir, mode):
    tasks = list(config_task.by_task(config))
    if len(tasks) > 1:
        raise ConfigError(
            f"{model_dir} is a run of the tasks {', '.join(tasks)}. "
            f"--mode={mode} needs the folder of one of them: "
            f"--model_dir={model_dir / tasks[0]}"
        )


def _saved_config(model_dir, options):
    if not model_dir:
        raise ConfigError(
            f"--mode={options.mode} needs --model_dir: the folder of a "
            "finished run."
        )
    path = model_dir / "config.yaml"
    if not path.exists():
        raise ConfigError(
            f"--model_dir={cut(options.model_dir)} is no run folder: it has no "
            "config.yaml. Train first, with the same --model_dir."
        )
    return resolve.load_for_one_machine(path)


def _evaluate(config, model_dir, options):
    from tf_adapters.runs import finished_run

    summary.print_evaluation(
        finished_run.evaluate_run(config, model_dir), config
    )


def _predict(config, model_dir, options):
    from tf_adapters.runs import finished_run

    if options.glue_submission:
        from tf_adapters.export import glue

        for path in glue.export_submission(
            config, model_dir, options.glue_submission
        ):
            print(f"GLUE submission: {path}")
        return
    task = pretraining_task.task_of_run(splits.declared_task(config), model_dir)
    if options.output:
        prediction_files.check_output_file(options.output, task)
    rows = finished_run.predict_file(config, model_dir, options.input)
    if not options.output:
        print("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
        return
    count = prediction_files.write_predictions(options.output, rows, task)
    print(f"{count} predictions in {options.output}")


def _export(config, model_dir, options):
    if options.format != "saved_model":
        from tf_adapters.export import foreign

        folder = foreign.export_adapter(
            config, model_dir, options.format, options.with_head
        )
        remote_folder.push(model_dir)
        print(f"Adapter for {options.format}: {remote_folder.address(folder)}")
        if options.format == "adapterhub":
            # Its default file is a pickle, which is not written here.
            print("`adapters` loads it with use_safetensors=True only.")
        return
    from tf_adapters.export import saved_model

    folder = saved_model.export_run(config, model_dir)
    remote_folder.push(model_dir)
    print(f"SavedModel: {remote_folder.address(folder)}")


def _export_bank(flag_layer, options):
    from tf_adapters.export import many_tasks

    _check_no_settings(flag_layer, options)
    if options.format != "saved_model":
        raise ConfigError(
            f"--format={options.format} writes one run's adapter: give "
            "--model_dir=<that run> in place of --adapters. Of many runs there "
            "is one SavedModel."
        )
    model_dir = remote_folder.local(options.model_dir or "runs/served")
    adapters = [remote_folder.local(folder) for folder in options.adapters]
    folder = many_tasks.export_runs(adapters, model_dir)
    remote_folder.push(model_dir)
    print(f"SavedModel: {remote_folder.address(folder)}")


def _check_no_settings(flag_layer, options):
    """Raises if there is a setting that an export of many tasks ignores."""
    flat = dataclass_config.flatten(flag_layer)
    given = {key for key, value in flat.items() if value not in (None, (), [])}
    given -= {"data.data_dir", "method.adapters"}
    if given or options.config_file or options.params_override:
        raise ConfigError(
            "A SavedModel of many tasks takes every setting from the runs of "
            "its adapters. Give only --adapters and --model_dir."
        )


_MODES = {
    "train_and_eval": cli_train.train_command,
    "train": cli_train.train_command,
    "eval": _evaluate,
    "predict": _predict,
    "export": _export,
}
