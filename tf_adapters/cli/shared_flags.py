"""Shared flags with their own help texts, and groups of flags in `--help`."""

from tf_adapters.cli.command import Flag

FLAGS = (
    Flag(
        "mode",
        "What to do.",
        "train_and_eval",
        kind="enum",
        choices=(
            *("train_and_eval", "train", "eval", "predict", "encode"),
            "export",
        ),
    ),
    Flag("method", "Method, see --list=methods."),
    Flag(
        "plugin",
        "Python file that registers your own methods or heads. Its code is "
        "run. May be repeated. See docs/extending.md.",
        (),
        kind="multi_string",
    ),
    Flag(
        "adapters",
        "Run folders of trained adapters, separated by commas: the members of "
        "a fusion, or with --mode=export the adapters in one SavedModel "
        "(written to --model_dir, by default runs/served).",
        kind="list",
    ),
    Flag(
        "tasks",
        "Tasks that --method=multitask trains together, separated by commas.",
        kind="list",
    ),
    Flag(
        "model_dir",
        "Run folder. Default: runs/<task>_<method>_<seed>. With "
        "--study: folder of the study folders. Default: runs.",
    ),
    Flag(
        "overwrite",
        "Train again where --model_dir holds a run already. Without "
        "it, an unfinished run with the same settings is resumed. With "
        "it, only a run that was started with it and then stopped (exit "
        "status 75) is resumed.",
        False,
        kind="boolean",
    ),
    Flag("config_file", "YAML with settings."),
    Flag(
        "params_override",
        "Settings as key=value,..., for example "
        "method.units=256,train.learning_rate=3e-4. May be repeated.",
        (),
        kind="multi_string",
    ),
    Flag(
        "input",
        "predict, encode: JSONL, CSV, TSV, .conllu, .conll, SQuAD's .json, or "
        ".txt with one text per line; `-` for standard input, with one text "
        "per line or JSON lines.",
    ),
    Flag(
        "output",
        "predict: file to write: .jsonl, .csv, .conllu or .conll for "
        "tags, .json for answers by question. Default: JSON lines to "
        "standard output. encode: .npy of NumPy.",
    ),
    Flag(
        "column",
        "encode: column of --input with the texts. Default: the text fields "
        "of the run's task. Of a pair or triple, each text gets a vector of "
        "its own if the run trains vectors.",
    ),
    Flag(
        "format",
        "export: what to write: a SavedModel, into <model_dir>/export; or an "
        "ONNX, LiteRT, OpenVINO or Keras file; or an ONNX file of the encoder "
        "that takes adapters as inputs; or the adapter as the `adapters` "
        "library or PEFT loads it, into <model_dir>/<format>/<task>.",
        "saved_model",
        kind="enum",
        choices=(
            *("saved_model", "onnx", "onnx_encoder", "litert", "openvino"),
            *("keras", "adapterhub", "peft"),
        ),
    ),
    Flag(
        "with_head",
        "export, with --format=adapterhub or peft: whether to export the head "
        "too.",
        True,
        kind="boolean",
    ),
    Flag(
        "glue_submission",
        "predict: folder for the files that GLUE's server scores, "
        "made from the test sets of the run's task instead of "
        "--input.",
    ),
    Flag(
        "list",
        "Print a table and exit.",
        kind="enum",
        choices=("tasks", "methods", "encoders", "studies"),
    ),
    Flag(
        "study",
        "Study in official_configs/studies, a YAML file, or "
        "`paper:<name>` for all studies of a paper, see "
        "--list=studies.",
    ),
    Flag(
        "report",
        "study: only make its table, from the finished runs.",
        False,
        kind="boolean",
    ),
    Flag(
        "small",
        "study: with the settings of its `small` block.",
        False,
        kind="boolean",
    ),
    Flag(
        "two_cores",
        "study: with the settings of its `two_cores` block.",
        False,
        kind="boolean",
    ),
    Flag(
        "one_gpu",
        "study: with the settings of its `one_gpu` block.",
        False,
        kind="boolean",
    ),
    Flag(
        "results_file",
        "study: JSON Lines file of finished runs. Runs in it are not trained "
        "again, and runs that finish are added.",
    ),
    Flag(
        "study_processes",
        "Number of runs at the same time, in a study or among the adapters "
        "that a fusion trains first. Default: 1, with --executor=ray as many "
        "as fit on its nodes when the study starts, with --executor=jax 20.",
        kind="integer",
        least=1,
    ),
    Flag(
        "executor",
        "study: where runs are trained: in processes here; as one JAX "
        "program for all runs that differ only in seed and learning rate; or "
        "on the nodes of Ray, which all must see this source, the data and "
        "--model_dir under the same paths (pip install "
        "'tf_adapters[jax]' or 'tf_adapters[ray]').",
        "local",
        kind="enum",
        choices=("local", "jax", "ray"),
    ),
    Flag(
        "ray_address",
        "ray: address of a running Ray cluster, or `auto` on one of its "
        "nodes. Default: start Ray on this machine.",
    ),
    Flag(
        "ray_cpus",
        "ray: number of CPUs, and of threads, for each run.",
        1,
        kind="integer",
        least=1,
    ),
    Flag(
        "ray_gpus",
        "ray: number of GPUs for each run; 0.5 puts two runs on one GPU.",
        0.0,
        kind="float",
        least=0.0,
    ),
    Flag(
        "verbose",
        "Show TensorFlow's own start-up lines.",
        False,
        kind="boolean",
    ),
)
# Maps the title of each group of flags in `--help` to the names of its flags.
# These are all flags, including flags that are short for a setting. Common
# flags are first.
GROUPS = {
    "What": (
        *("task", "method", "encoder", "mode", "adapters", "tasks", "list"),
        *("init_adapter", "stack_on", "pretrain_steps", "plugin", "quantize"),
    ),
    "Data": (
        *("data", "text", "label", "head", "validation", "test", "data_dir"),
        *("task_file", "max_length", "max_train_examples", "eval_languages"),
    ),
    "Training": (
        *("epochs", "learning_rate", "batch_size", "seed", "precision"),
        *("config_file", "params_override", "distribution_strategy", "tpu"),
        "backend",
    ),
    "Output": (
        *("model_dir", "overwrite", "input", "column", "output", "format"),
        *("with_head", "glue_submission", "verbose"),
    ),
    "Studies": (
        *("study", "report", "small", "two_cores", "one_gpu"),
        "results_file",
        *("study_processes", "executor", "ray_address", "ray_cpus"),
        *("ray_gpus",),
    ),
}
# The subcommands. Each is a module in this folder that has a `COMMAND`.
COMMANDS = (
    *("train", "eval", "predict", "explain", "encode", "export", "report"),
    *("study", "analyse", "tune", "merge", "adapters", "pull", "push"),
    "serve",
)
