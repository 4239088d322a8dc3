"""The command: its flags, and what they become before anything is imported.

    tf-adapters train --data=reviews.csv --text=review --label=stars
    tf-adapters predict runs/reviews_houlsby_0 "a fine film"
    tf-adapters train --help

`python train.py` and `python -m tf_adapters` are the same. A flag that several
subcommands have is defined here once, and each subcommand's file says which it
takes. Without a subcommand all of them are there, and `--mode` says what to do.

Settings come from the method's file in official_configs/methods, then
--config_file, then --params_override, then the short flags; later ones win.
`eval`, `predict` and `export` read the run's own config.yaml first.
"""

import os

# TensorFlow's start-up notes would hide the tables that this program prints.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import copy
import importlib
import sys
import types

from absl import app
from absl import flags
from absl import logging

from tf_adapters.cli import errors as cli_errors
from tf_adapters.cli import help_text
from tf_adapters.cli import quiet
from tf_adapters.common.suggestions import did_you_mean
from tf_adapters.config import describe

flags.DEFINE_enum(
    "mode",
    "train_and_eval",
    ["train_and_eval", "train", "eval", "predict", "export"],
    "What to do.",
)
flags.DEFINE_string("method", None, "Method, see --list=methods.")
flags.DEFINE_multi_string(
    "plugin",
    [],
    "Python file that registers methods or heads of your own, which is run. "
    "May be repeated. See docs/extending.md.",
)
flags.DEFINE_list(
    "adapters",
    None,
    "Run folders of trained adapters, with commas between: what fusion fuses, "
    "or with --mode=export what one SavedModel serves (to --model_dir, by "
    "default runs/served).",
)
flags.DEFINE_list(
    "tasks",
    None,
    "Tasks that --method=multitask trains together, with commas between.",
)
flags.DEFINE_string(
    "model_dir",
    None,
    "Run folder. Default: runs/<task>_<method>_<seed>. With --study: folder of "
    "the study folders. Default: runs.",
)
flags.DEFINE_boolean(
    "overwrite",
    False,
    "Train again where --model_dir holds a run already. Without it an "
    "unfinished run of the same settings is gone on with; with it only one "
    "that began so and was told to stop (exit status 75).",
)
flags.DEFINE_string("config_file", None, "YAML with settings.")
flags.DEFINE_multi_string(
    "params_override",
    [],
    "Settings as key=value,..., for example "
    "method.units=256,train.learning_rate=3e-4. May be repeated.",
)
flags.DEFINE_string(
    "input",
    None,
    "predict: JSONL, CSV, TSV, .conllu, .conll, SQuAD's .json, or .txt with a "
    "text a line; `-` for standard input, with a text a line or JSON lines.",
)
flags.DEFINE_string(
    "output",
    None,
    "predict: file to write: .jsonl, .csv, .conllu or .conll for tags, .json "
    "for answers by question. Default: JSON lines to standard output.",
)
flags.DEFINE_enum(
    "format",
    "saved_model",
    ["saved_model", "adapterhub", "peft"],
    "export: what to write: a SavedModel, into <model_dir>/export, or the "
    "adapter as the `adapters` library or PEFT loads it, into "
    "<model_dir>/<format>/<task>.",
)
flags.DEFINE_boolean(
    "with_head",
    True,
    "export, with --format=adapterhub or peft: whether the head goes along.",
)
flags.DEFINE_string(
    "glue_submission",
    None,
    "predict: folder for the files that GLUE's server scores, made from the "
    "test sets of the run's task instead of --input.",
)
flags.DEFINE_enum(
    "list",
    None,
    ["tasks", "methods", "encoders", "studies"],
    "Print a table and exit.",
)
flags.DEFINE_string(
    "study",
    None,
    "Study in official_configs/studies, a YAML file, or `paper:<name>` for all "
    "studies of a paper, see --list=studies.",
)
flags.DEFINE_boolean(
    "report", False, "study: only make its table, from the finished runs."
)
flags.DEFINE_boolean(
    "small", False, "study: with the settings of its `small` block."
)
flags.DEFINE_boolean(
    "two_cores", False, "study: with the settings of its `two_cores` block."
)
flags.DEFINE_integer(
    "study_processes",
    None,
    "How many runs of a study at a time, or of the adapters that a fusion "
    "trains first. Default: 1; with --executor=ray as many as its nodes have "
    "room for when the study starts.",
    lower_bound=1,
)
flags.DEFINE_enum(
    "executor",
    "local",
    ["local", "ray"],
    "study: where runs are trained: in processes here, or on the nodes of Ray, "
    "which all must see this source, the data and --model_dir under the same "
    "paths (pip install 'tf_adapters[ray]').",
)
flags.DEFINE_string(
    "ray_address",
    None,
    "ray: address of a Ray that runs, or `auto` on one of its nodes. Default: "
    "start one on this machine.",
)
flags.DEFINE_integer(
    "ray_cpus", 1, "ray: CPUs, and threads, of a run.", lower_bound=1
)
flags.DEFINE_float(
    "ray_gpus", 0.0, "ray: GPUs of a run, 0.5 for two on one.", lower_bound=0.0
)
flags.DEFINE_boolean("verbose", False, "Show TensorFlow's own start-up lines.")
# Settings with a flag of the same meaning, which `describe` knows.
_SHORT = {
    "task": ("task", flags.DEFINE_string),
    "task_file": ("data.task_file", flags.DEFINE_string),
    "data": ("data.file", flags.DEFINE_string),
    "text": ("data.text", flags.DEFINE_list),
    "label": ("data.label", flags.DEFINE_string),
    "head": ("data.head", flags.DEFINE_string),
    "validation": ("data.validation_file", flags.DEFINE_string),
    "test": ("data.test_file", flags.DEFINE_string),
    "encoder": ("encoder", flags.DEFINE_string),
    "data_dir": ("data.data_dir", flags.DEFINE_string),
    "init_adapter": ("init_adapter", flags.DEFINE_string),
    "stack_on": ("stack_on", flags.DEFINE_string),
    "eval_languages": ("data.eval_languages", flags.DEFINE_list),
    "learning_rate": ("train.learning_rate", flags.DEFINE_float),
    "epochs": ("train.epochs", flags.DEFINE_integer),
    "batch_size": ("train.batch_size", flags.DEFINE_integer),
    "seed": ("seed", flags.DEFINE_integer),
    "max_train_examples": ("data.max_train_examples", flags.DEFINE_integer),
    "max_length": ("data.max_length", flags.DEFINE_integer),
    "precision": ("train.precision", flags.DEFINE_string),
    "distribution_strategy": ("distribution_strategy", flags.DEFINE_string),
    "tpu": ("tpu", flags.DEFINE_string),
    "pretrain_steps": ("pretrain.steps", flags.DEFINE_integer),
}
for _name, (_key, _define) in _SHORT.items():
    _meaning = f"{describe.meaning(_key)} Short for --params_override={_key}="
    _define(_name, None, f"{_meaning}...")
# From each flag that sets something to the setting's name.
_SETTINGS = {name: key for name, (key, _) in _SHORT.items()} | {
    "method": "method.name",
    "adapters": "method.adapters",
    "tasks": "method.tasks",
}

# The flags without a subcommand, the common ones first.
GROUPS = {
    "What": (
        *("task", "method", "encoder", "mode", "adapters", "tasks", "list"),
        *("init_adapter", "stack_on", "pretrain_steps", "plugin"),
    ),
    "Data": (
        *("data", "text", "label", "head", "validation", "test", "data_dir"),
        *("task_file", "max_length", "max_train_examples", "eval_languages"),
    ),
    "Training": (
        *("epochs", "learning_rate", "batch_size", "seed", "precision"),
        *("config_file", "params_override", "distribution_strategy", "tpu"),
    ),
    "Output": (
        *("model_dir", "overwrite", "input", "output", "format", "with_head"),
        *("glue_submission", "verbose"),
    ),
    "Studies": (
        *("study", "report", "small", "two_cores", "study_processes"),
        *("executor", "ray_address", "ray_cpus", "ray_gpus"),
    ),
}
# Each is a file here, with a `COMMAND`.
COMMANDS = (
    *("train", "eval", "predict", "export", "report", "study", "analyse"),
    *("merge", "adapters", "pull", "push"),
)
_DEFINE = {
    "string": flags.DEFINE_string,
    "boolean": flags.DEFINE_boolean,
    "integer": flags.DEFINE_integer,
    "list": flags.DEFINE_list,
}
_HELP = ("--help", "-help", "-h", "-?")
_FULL = "--helpfull"


def load_command(name):
    """Returns the `Command` of a subcommand's name."""
    return importlib.import_module(f"tf_adapters.cli.{name}").COMMAND


def define(command):
    """Returns the flags of a subcommand, as `FlagValues`, not yet parsed."""
    values = flags.FlagValues()
    values.set_gnu_getopt()
    for flag in command.own_flags:
        limits = {} if flag.least is None else {"lower_bound": flag.least}
        _DEFINE[flag.kind](
            *(flag.name, flag.default, flag.help),
            flag_values=values,
            **limits,
        )
    for name in command.flag_names:
        if name not in values:
            values[name] = copy.deepcopy(flags.FLAGS[name])
            values[name].unparse()
    return values


def parse(command, arguments):
    """Returns options, the layer of settings, and what is not a flag.

    Args:
        command: `Command`.
        arguments: List of strings, what follows the subcommand's name.

    Raises:
        SystemExit: After `--help`, and after a sentence about a wrong flag.
    """
    values = define(command)
    if any(argument in (*_HELP, _FULL) for argument in arguments):
        full = _FULL in arguments
        print(help_text.command_help(command, values, full))
        sys.exit(0)
    try:
        rest = values([command.name, *arguments])[1:]
    except flags.Error as error:
        sys.exit(
            f"Error: {str(error).rstrip('. ?')}. See tf-adapters "
            f"{command.name} --help."
        )
    shared = flags.FLAGS.flags_by_module_dict()[__name__]
    options = {flag.name: flag.default for flag in shared}
    options |= {name: values[name].value for name in values}
    return types.SimpleNamespace(**options), _flag_layer(values), rest


def _flag_layer(values=flags.FLAGS):
    """Returns the settings that flags give, as nested dicts."""
    layer = {"data": {}, "train": {}}
    for name, key in _SETTINGS.items():
        value = values[name].value if name in values else None
        if value is not None:
            section, _, field = key.rpartition(".")
            if section:
                layer.setdefault(section, {})[field] = value
            else:
                layer[field] = value
    return layer


def main(argv):
    """Runs the command without a subcommand: `--mode` says what to do."""
    if len(argv) > 1:
        sys.exit(
            f"Error: Unknown argument `{argv[1]}`. Flags are --name=value, or "
            "--name alone."
        )
    _start(flags.FLAGS)
    # Imported here, so that --help and wrong flags answer at once.
    from tf_adapters.cli import main as cli_main

    sys.exit(cli_main.run_command(_flag_layer(), flags.FLAGS))


def _start(options):
    logging.set_verbosity(logging.WARNING)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    if not options.verbose:
        quiet.install()


def run():
    """Runs the command with the arguments of this process."""
    arguments = sys.argv[1:]
    name = arguments[0] if arguments else ""
    if name == "analyse":
        from tf_adapters.cli import analyse

        quiet.install()
        sys.exit(analyse.run(arguments[1:]))
    if name in COMMANDS:
        app.run(_run_subcommand, flags_parser=_parse_subcommand)
    if not arguments or any(argument in _HELP for argument in arguments):
        sys.exit(cli_errors.exit_status(_print_overview) or not arguments)
    if not name.startswith("-"):
        sys.exit(
            f"Error: Unknown command `{name}`.{did_you_mean(name, COMMANDS)} "
            f"Known: {', '.join(COMMANDS)}."
        )
    # absl's --helpfull shows text and flags of the program that was started.
    sys.modules["__main__"].__doc__ = __doc__
    for flag in flags.FLAGS.get_flags_for_module(__name__):
        flags.FLAGS.register_key_flag_for_module(sys.argv[0], flag)
    app.run(main)


def _print_overview():
    commands = [load_command(name) for name in COMMANDS]
    print(help_text.overview(commands, GROUPS, flags.FLAGS), flush=True)


def _parse_subcommand(argv):
    flags.FLAGS(argv[:1])  # absl's own flags need to have values.
    command = load_command(argv[1])
    return command, *parse(command, argv[2:])


def _run_subcommand(parsed):
    command, options, layer, arguments = parsed
    _start(options)
    sys.exit(cli_errors.exit_status(command.run, options, layer, arguments))
