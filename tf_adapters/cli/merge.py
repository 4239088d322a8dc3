"""`tf-adapters merge`: merges several adapters into one, without training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tf_adapters.cli.command import Command
from tf_adapters.cli.command import Flag
from tf_adapters.cli.command import check_no_arguments
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.config import plugins
from tf_adapters.runs import remote_folder


def run_merge(
    options: Any, layer: dict[str, Any], arguments: Sequence[str]
) -> None:
    """Merges adapters, writes a run folder and prints its result.

    See `Command.run` for the arguments.
    """
    check_no_arguments("merge", arguments)
    for name in ("adapters", "model_dir"):
        if not getattr(options, name):
            raise ConfigError(f"`tf-adapters merge` needs --{name}.")
    _check_flags(options)
    plugins.load_plugins(options.plugin)
    weights = _weights(options)
    # Imported here, because it takes seconds.
    from tf_adapters.runs import merged_run
    from tf_adapters.runs import summary

    settings = merged_run.MergeSettings(
        how=options.how,
        weights=weights,
        head_of=options.head_of,
        rank=options.rank,
        texts=options.texts,
        examples=options.examples,
        evaluations=options.evaluations,
    )
    adapters = options.adapters
    target = None
    if layer["data"]:
        folder = options.head_of or adapters[-1]
        target = merged_run.MergeTarget(folder, layer["data"])
    model_dir = remote_folder.local(options.model_dir)
    result = merged_run.merge_runs(
        adapters, model_dir, settings, target, options.overwrite
    )
    summary.print_merge(result, model_dir)


def _check_flags(options: Any) -> None:
    """Raises a `ConfigError` if a flag would have no effect."""
    needed = {
        "texts": ("--how=matched_mean", options.how == "matched_mean"),
        "examples": ("--weights=search", options.weights == "search"),
        "evaluations": ("--weights=search", options.weights == "search"),
    }
    defaults = {flag.name: flag.default for flag in _OWN}
    for name, (flag, is_there) in needed.items():
        if getattr(options, name) != defaults[name] and not is_there:
            raise ConfigError(
                f"--{name} has an effect only with {flag}: add it, or leave "
                f"--{name} out."
            )


def _weights(options: Any) -> tuple[float, ...] | str | None:
    if options.weights in (None, "search"):
        return options.weights
    try:
        return tuple(float(one) for one in options.weights.split(","))
    except ValueError as error:
        raise ConfigError(
            "--weights is a number for each adapter, as in --weights=0.7,0.3, "
            f"or `search`. Received: --weights={cut(options.weights)}"
        ) from error


_OWN = (
    Flag("adapters", "Run folders, separated by commas.", kind="list"),
    Flag("model_dir", "Run folder of the merged adapter."),
    Flag("overwrite", "Replace a run in --model_dir.", False, "boolean"),
    Flag(
        "how",
        "mean, matched_mean, sum, output_mean or output_sum (docs/guide.md).",
        "mean",
    ),
    Flag(
        "weights",
        "A number for each adapter, separated by commas, or `search` "
        "(LoraHub), which finds numbers with a small loss on a few training "
        "examples.",
    ),
    Flag(
        "head_of",
        "Which of --adapters gives task, head and data. Default: the last.",
    ),
    Flag(
        "rank",
        "Rank to cut the products of LoRAs to, with output_mean and "
        "output_sum.",
        kind="integer",
        least=1,
    ),
    Flag(
        "texts",
        "Number of training texts for matching units.",
        256,
        "integer",
        1,
    ),
    Flag(
        "examples",
        "Number of training examples in the search.",
        64,
        "integer",
        1,
    ),
    Flag(
        "evaluations", "Number of evaluations in the search.", 40, "integer", 1
    ),
)
COMMAND = Command(
    name="merge",
    summary="Makes one adapter of several, without training. The result is a "
    "run folder for eval, predict and export; its task, head and data are "
    "those of the last adapter's run, or of --head_of.",
    usage="--adapters=RUN,RUN,... --model_dir=FOLDER",
    examples=(
        "tf-adapters merge --adapters=runs/a,runs/b --model_dir=runs/merged",
        "tf-adapters merge --adapters=runs/a,runs/b --model_dir=runs/merged \\",
        "    --how=output_sum --weights=search",
    ),
    groups={
        "What": ("adapters", "how", "weights", "head_of", "rank", "plugin"),
        "Data": (
            *("data", "validation", "test", "data_dir", "task_file"),
            *("texts", "examples", "evaluations"),
        ),
        "Output": ("model_dir", "overwrite", "verbose"),
    },
    run=run_merge,
    own_flags=_OWN,
    common=("adapters",),
)
