"""`tf-adapters export RUN`: exports a model, or its adapter for a library."""

from __future__ import annotations

from collections.abc import Sequence
import importlib
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import on_run
from tf_adapters.cli.command import with_options
from tf_adapters.common import dataclass_config
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.export import precisions
from tf_adapters.runs import remote_folder

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


# Maps each format of a whole model to the module that writes it, and to a name
# for messages.
_FILES = {
    "saved_model": ("tf_adapters.export.saved_model", "SavedModel"),
    "onnx": ("tf_adapters.export.onnx_model", "ONNX"),
    "onnx_encoder": ("tf_adapters.export.onnx_encoder", "ONNX"),
    "litert": ("tf_adapters.export.litert_model", "LiteRT"),
    "openvino": ("tf_adapters.export.openvino_model", "OpenVINO"),
    "keras": ("tf_adapters.text.keras_export", "Keras"),
}


def run_export(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> Any:
    """Exports a run, or several adapters as one model.

    Returns the exit status. See `Command.run` for the arguments.
    """
    from tf_adapters.cli import main

    if options.adapters and not arguments:
        options = with_options(options, mode="export")
    else:
        options = on_run("export", options, arguments)
        if is_of_many_tasks(options):
            raise ConfigError(
                f"{cut(arguments[0])} holds no run. To export several adapters "
                "as one model, leave it out, and name the folder to write to: "
                "--model_dir=runs/served."
            )
    return main.run_command(layer, options)


def without_file_precision(
    layer: dict[str, Any], options: Any
) -> dict[str, Any]:
    """Returns `layer` without a precision that belongs to an exported file.

    With `export`, `--precision=int8` sets the precision of the exported file.
    It is not a valid value of the setting `train.precision`, which is the
    precision in which a model computes, and which such files do not take.

    Args:
        layer: Nested dict of the settings that flags set.
        options: See `main.run_command`.

    Raises:
        ConfigError: If files of the given format cannot have this precision.
    """
    train = dict(layer.get("train", {}))
    given = str(train.get("precision"))
    is_of_many = is_of_many_tasks(options)
    of_format = precisions.OF_MANY_TASKS if is_of_many else precisions.OF_FORMAT
    is_of_file = given.startswith("int") or (
        given != "None" and options.format in of_format
    )
    if options.mode != "export" or not is_of_file:
        return layer
    if given not in of_format.get(options.format, ()):
        forms = [
            f"--format={name} ({', '.join(known)})"
            for name, known in of_format.items()
        ]
        raise ConfigError(
            f"--precision={cut(given)} is not a precision of --format="
            f"{options.format}. Formats with precisions of their own: "
            f"{'; '.join(forms)}."
        )
    del train["precision"]
    return {**layer, "train": train}


def _file_precision(options: Any) -> dict[str, Any]:
    """Returns a dict with the keyword argument `precision` for an exporter.

    The dict is empty unless the exported file is to be quantized.
    """
    is_quantized = str(options.precision).startswith("int")
    return {"precision": options.precision} if is_quantized else {}


def is_of_many_tasks(options: Any) -> bool:
    """Returns whether a command exports several adapters as one model.

    If `model_dir` is a run folder, only that run is exported, and `adapters`
    are the members of its fusion.
    """
    if options.mode != "export" or not options.adapters:
        return False
    given = options.model_dir and remote_folder.local(options.model_dir)
    return not (given and (given / "config.yaml").exists())


def export_command(config: Config, model_dir: Path, options: Any) -> None:
    """Exports one run in the format `options.format`, and prints the path.

    Args:
        config: `Config` of the run.
        model_dir: Path of the run folder.
        options: See `main.run_command`.
    """
    if options.format in _FILES:
        module, what = _FILES[options.format]
        export = importlib.import_module(module).export_run
        folder = export(config, model_dir, **_file_precision(options))
    else:
        from tf_adapters.export import foreign

        what = f"Adapter for {options.format}"
        folder = foreign.export_adapter(
            config, model_dir, options.format, options.with_head
        )
    remote_folder.copy_to_address(model_dir)
    print(f"{what}: {remote_folder.address(folder)}")
    if options.format == "adapterhub":
        # By default, the library `adapters` loads a pickle, which we do not
        # write.
        print("`adapters` loads it with use_safetensors=True only.")


def export_many_tasks(flag_layer: dict[str, Any], options: Any) -> None:
    """Exports the adapters of many runs as one model, and prints its path.

    Args:
        flag_layer: Nested dict of the settings that flags set.
        options: See `main.run_command`.

    Raises:
        ConfigError: If a setting is given, or if a file of the given format can
            hold only one run.
    """
    _check_no_settings(flag_layer, options)
    if options.format == "saved_model":
        from tf_adapters.export import many_tasks as exporter

        what = "SavedModel"
    elif options.format == "onnx":
        from tf_adapters.export import onnx_bank as exporter

        what = "ONNX"
    else:
        raise ConfigError(
            f"--format={options.format} writes the adapter of one run: give "
            "--model_dir=<that run> instead of --adapters. Only a SavedModel "
            "and an ONNX file hold several runs."
        )
    model_dir = remote_folder.local(options.model_dir or "runs/served")
    adapters = [remote_folder.local(folder) for folder in options.adapters]
    folder = exporter.export_runs(
        adapters, model_dir, **_file_precision(options)
    )
    remote_folder.copy_to_address(model_dir)
    print(f"{what}: {remote_folder.address(folder)}")


def _check_no_settings(flag_layer: dict[str, Any], options: Any) -> None:
    """Raises a `ConfigError` if a command that exports many runs has settings.

    See `export_many_tasks` for the arguments.
    """
    flat = dataclass_config.flatten(flag_layer)
    given = {key for key, value in flat.items() if value not in (None, (), [])}
    given -= {"data.data_dir", "method.adapters"}
    if given or options.config_file or options.params_override:
        raise ConfigError(
            "A model of many tasks takes all settings from the runs of its "
            "adapters. Give only --adapters, --format, --model_dir and, for "
            "an ONNX file, --precision=int8."
        )


COMMAND = Command(
    name="export",
    summary="Writes a finished run as a SavedModel, an ONNX, LiteRT, OpenVINO "
    "or Keras file, or its adapter for the `adapters` library or PEFT.",
    usage="RUN",
    examples=(
        "tf-adapters export runs/reviews_pfeiffer_0",
        "tf-adapters export runs/reviews_pfeiffer_0 --format=onnx",
        "tf-adapters export runs/reviews_pfeiffer_0 --format=onnx "
        "--precision=int8",
        "tf-adapters export runs/reviews_pfeiffer_0 --format=litert",
        "tf-adapters export runs/sst2_lora_0 --format=peft",
        "tf-adapters export --adapters=runs/sst2,runs/rte "
        "--model_dir=runs/served",
    ),
    groups={
        "What": ("format", "with_head", "adapters", "model_dir"),
        "Settings": (
            *("max_length", "precision", "encoder", "stack_on", "data_dir"),
            *("task_file", "config_file", "params_override", "plugin"),
            *("quantize", "verbose"),
        ),
    },
    run=run_export,
    common=("format", "with_head", "adapters"),
    defaults={
        "model_dir": "the run in the command",
        **dict.fromkeys(("encoder", "max_length"), "the run's"),
        "precision": "the run's; float32 for ONNX, LiteRT and OpenVINO, which "
        "also take int8, ONNX also int8_static",
    },
)
