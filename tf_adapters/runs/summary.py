"""Prints a run's data, its plan and its result."""

from __future__ import annotations

import collections
from collections.abc import Callable
import functools
import math
from pathlib import Path
from typing import Any

from tf_adapters.config import task as config_task
from tf_adapters.config.settings import Config
from tf_adapters.data.rows import splits
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.runs import remote_folder
from tf_adapters.tasks.task import Task

# Numeric labels that are farther than this from the head's first prediction
# are learned slowly. Labels from 50 to 100 train well from their mean.
_FAR = 30
# Maximum number of classes to name. The most frequent ones are named.
_MOST_NAMED = 10
# Settings of `DataConfig` that leave out rows of training and validation.
_LIMITS = (
    "max_train_examples",
    "train_examples_of",
    "train_fraction",
    "max_validation_examples",
    "low_resource",
)
_say = functools.partial(print, flush=True)


def print_labels(
    task: Task,
    rows: dict[str, list[Any]],
    config: Config,
    say: Callable[[str], object] = _say,
) -> None:
    """Prints the number of rows per class, or the range of numeric labels.

    For classes, also prints the accuracy of always predicting the most common
    class. Rows of the test split or of a validation file are not counted.
    Prints nothing for other kinds of labels.

    Args:
        task: `Task` with resolved labels.
        rows: Dict from split to rows.
        config: `Config`, which may limit the number of rows.
        say: Function that prints a line of text. The text may mention
            command-line flags. Default: `print`.
    """
    if task.kind.label not in ("class", "number"):
        return
    known = [row["label"] for row in rows["train"]]
    if task.files and "validation" not in task.files:
        held_out = rows["validation"]
        known += [row["label"] for row in held_out]
        classes = " from each class" * (task.kind.label == "class")
        limits = [getattr(config.data, name) for name in _LIMITS]
        # How many rows the table has is not known if only some are used.
        table = "" if any(limits) else f"of {len(known):,} "
        say(
            f"validation: {len(held_out):,} {table}rows, drawn"
            f"{classes} with the seed (to choose others: --validation=<file>)"
        )
    if task.kind.label == "number":
        say(_numbers(known, task.head, config.head or {}))
        return
    counts = collections.Counter(task.labels[label] for label in known)
    # Without quotes, a class named `5` would look like a second count.
    mark = "`" if any(name.isnumeric() for name in counts) else ""
    named = ", ".join(
        f"{mark}{name}{mark} {count}"
        for name, count in counts.most_common(_MOST_NAMED)
    )
    more = ", ..." * (len(counts) > _MOST_NAMED)
    largest = max(counts.values()) / len(known)
    say(
        f"{len(task.labels)} classes: {named}{more}; always the largest: "
        f"{largest:.3f}"
    )


def _numbers(labels: Any, head: str, settings: dict[str, Any]) -> str:
    mean = sum(labels) / len(labels)
    text = f"labels from {min(labels):g} to {max(labels):g}, mean {mean:.4g}"
    bias = settings.get("initial_bias", 0)
    if not isinstance(bias, int | float):  # The head refuses other texts.
        bias = mean
    distance = max(abs(label - bias) for label in labels)
    if head == "regression" and distance > _FAR:
        text += (
            f"; the head begins at {bias:.4g}, and learns numbers so far from "
            "it slowly: divide them, so that most are within 5 of it"
        )
    return text


def print_plan(
    config: Config,
    rows: dict[str, list[Any]],
    say: Callable[[str], object] = _say,
) -> None:
    """Prints the learning rate and the number of steps of a run.

    Args:
        config: `Config`.
        rows: Dict from split to rows.
        say: See `print_labels`.
    """
    train = config.train
    an_epoch = math.ceil(len(rows["train"]) / train.batch_size)
    least = math.ceil((train.min_steps or 0) / an_epoch)
    epochs = max(train.epochs, least)
    steps = epochs * an_epoch
    how_many, setting = f"{steps:,} steps: {epochs:,} epochs of", "--epochs"
    if train.max_steps and train.max_steps < steps:
        how_many = f"{train.max_steps:,} steps; an epoch has"
        setting = "train.max_steps"
    may_end_early = train.early_stopping_patience and train.keep == "best"
    most = "at most " if may_end_early else ""
    say(
        f"learning rate {train.learning_rate:g}, {most}{how_many} {an_epoch:,} "
        f"(change with --learning_rate and {setting})"
    )


def print_tasks(
    result: dict[str, Any], config: Config, model_dir: Path
) -> None:
    """Prints the result of a run of several tasks."""
    for name, metrics in result["tasks"].items():
        for split, values in metrics.items():
            print(f"{name} {split}: {_metrics(values)}")
        adapter = remote_folder.address(model_dir / name / "adapter")
        print(f"{name} adapter: {adapter}")
    if config.method.train_encoder:
        print(f"encoder: {remote_folder.address(model_dir / 'encoder')}")
    _speed(result)


def print_run(result: dict[str, Any], config: Config, model_dir: Path) -> None:
    """Prints the result of a run of one task."""
    print_evaluation(
        {k: result[k] for k in splits.EVALUATED if k in result}, config
    )
    for key, value in result.get("method_report", {}).items():
        print(f"{key}: {value:.4g}")
    weights = model_dir / "adapter" / "adapter.safetensors"
    # Results of older versions have no `encoder_bytes`.
    of_encoder = result.get("encoder_bytes", 4 * result["encoder_weights"])
    # Without a shared folder, only the chief has this file.
    if weights.exists():
        print(
            f"adapter: {remote_folder.address(weights.parent)} "
            f"({weights.stat().st_size / 1e6:.1f} MB next to an encoder of "
            f"{of_encoder / 1e6:.0f} MB)"
        )
    _speed(result)
    if "transfer" in result:
        print_evaluation({"transfer": result["transfer"]}, config)


def print_merge(result: dict[str, Any], model_dir: Path) -> None:
    """Prints the result of a merge of adapters."""
    print(f"validation: {_metrics(result['validation'])}")
    merged = result["merged"]
    if merged["weights"]:
        weights = (f"{weight:.4g}" for weight in merged["weights"])
        print(f"weights: {', '.join(weights)}")
    print(
        f"adapter: {remote_folder.address(model_dir / 'adapter')} "
        f"({merged['adapter_weights']:,} weights, merged in "
        f"{result['merging_seconds']:.1f} s)"
    )


def print_search(
    result: dict[str, Any], config: Config, model_dir: Path
) -> None:
    """Prints the result of a search for a network without an encoder."""
    shown = {k: result[k] for k in splits.EVALUATED if k in result}
    print_evaluation(shown, config)
    settings = ", ".join(f"{k} {v}" for k, v in result["settings"].items())
    print(
        f"best of {result['trials']} networks, with "
        f"{result['trained_weights']:,} weights: {settings}"
    )
    print(f"network: {remote_folder.address(model_dir / 'model.keras')}")


def _speed(result: dict[str, Any]) -> None:
    print(
        f"{result['examples_per_second']:.0f} examples a second, "
        f"{result['padding_share']:.0%} of positions were padding, "
        f"{result['seconds']:.0f} s in all"
    )
    if result.get("skipped_steps"):
        print(
            f"{result['skipped_steps']} of {result['steps']} steps were "
            "skipped: their float16 gradients overflowed"
        )


def _metrics(values: Any) -> str:
    return ", ".join(f"{name} {value:.4f}" for name, value in values.items())


def print_evaluation(values: Any, config: Config) -> None:
    """Prints a line of metrics for each split.

    Args:
        values: Dict from split to metrics. The key `"transfer"` has metrics of
            several languages, which are printed as a table.
        config: `Config`.
    """
    for split, metrics in values.items():
        if split == "transfer":
            print(
                zero_shot_transfer.transfer_table(
                    config_task.declared_task(config), metrics
                )
            )
            if config.encoder == "minilm":
                print(
                    "MiniLM was trained on English only: its numbers in other "
                    "languages test the program and do not measure transfer."
                )
        else:
            print(f"{split}: {_metrics(metrics)}")
