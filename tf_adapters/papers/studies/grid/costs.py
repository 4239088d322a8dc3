"""Estimates the cost of a study before it runs.

Training takes `6 x weights x tokens` operations if the encoder is trained, and
`4 x weights x tokens` if it is frozen and only passes the gradient on.
Evaluation takes `2 x weights x tokens`. Only the weights in the encoder blocks'
matrix multiplications count. Embeddings, adapters, heads, and the products of
queries, keys and values do not. Early stopping is ignored.

Operations are converted to seconds on two cores by measured speeds, and to
seconds on an accelerator by a fraction of its specified speed.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.config import task as config_task
from tf_adapters.launch import member_plan
from tf_adapters.launch import planned_run
from tf_adapters.papers.studies.grid import known_sizes

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.launch.planned_run import Run


# Operations per second on two cores in float32, computed from the examples per
# second in docs/results.md (MiniLM, Houlsby 64). SST-2 with 13.1 tokens: 94 in
# training and 302 in inference. MRPC with 53.4 tokens: 32 and 107. In billions
# of operations, this is 52 and 73 in training, and 84 and 121 in inference.
_TRAINING, _EVALUATION = 62e9, 103e9
# Seconds that a run needs for imports, data, weights and graphs.
_START = 40.0
# An NVIDIA A100's bfloat16 rate, and the fraction that runs are assumed to
# reach.
_ACCELERATOR = 0.4 * 312e12
ACCELERATOR = "A100 at 40 % of 312 TFLOP/s"
# Methods that train the whole encoder, and methods that train only a head.
_WHOLE = ("full", "mixout", "diff_pruning")
_HEAD = ("head_only",)
# A method that searches over models. Its cost depends on its settings.
_SEARCH = "no_bert"
_LOW_RESOURCE_VALIDATION = 1000  # He et al. 2021, section 3.2.


@dataclasses.dataclass(frozen=True)
class Cost:
    """The estimated cost of training and evaluating runs.

    Attributes:
        runs: Number of runs.
        two_core_seconds: Seconds on two cores, with one run at a time.
        accelerator_seconds: Seconds on the accelerator.
        unknown: Names of tasks and encoders of unknown size. The seconds do not
            include their runs.
    """

    runs: int
    two_core_seconds: float
    accelerator_seconds: float
    unknown: tuple


def cost_of(runs: "Sequence[Run]") -> "Cost":
    """Returns the `Cost` of a study's runs.

    Includes the training of members. (Members are the adapters that a fusion
    combines.) A member counts once, even if several fusions use it or if it is
    also a run of the study.

    Args:
        runs: List of `Run`.
    """
    configs = {run.id: run.config for run in runs}
    for run in runs:
        if run.config.members.tasks and not run.config.method.adapters:
            for member in member_plan.plan_members(run.config):
                configs.setdefault(
                    planned_run.run_id(member.config), member.config
                )
    unknown, seconds, operations = {}, 0.0, 0.0
    for config in configs.values():
        names = _unknown(config)
        unknown |= dict.fromkeys(names)
        if not names:
            training, evaluation = operations_of(config)
            seconds += _START + training / _TRAINING + evaluation / _EVALUATION
            operations += training + evaluation
    return Cost(len(runs), seconds, operations / _ACCELERATOR, tuple(unknown))


def _unknown(config: "Config") -> list[Any]:
    """Returns the names of a run's tasks and encoder that have no known size.

    If the run searches over models, the name of the search is added.
    """
    names = [
        task
        for task in config_task.by_task(config)
        if task not in known_sizes.TASKS
    ]
    if known_sizes.encoder_size(config.encoder) is None:
        names.append(config.encoder)
    if methods.name_of(config.method) == _SEARCH:
        names.append(f"the search of {_SEARCH}")
    return names


def operations_of(config: "Config") -> tuple[Any, Any]:
    """Returns the numbers of operations for a run's training and evaluation.

    Args:
        config: `Config` whose task and encoder have known sizes.
    """
    encoder: Any = known_sizes.encoder_size(config.encoder)
    training = evaluation = 0.0
    own = config_task.by_task(config).values()
    examples = sum(_rows(one)["train"] for one in own)
    steps = _steps(config.train, examples)
    for one in own:
        rows, tokens = _rows(one), _tokens(one)
        share = rows["train"] / examples
        tuned = steps * config.train.batch_size * share
        pretrained = config.pretrain.steps * config.pretrain.batch_size * share
        training += (tuned + pretrained) * tokens
        times = _validations(config.train, steps)
        evaluation += (times * rows["validation"] + rows["test"]) * tokens
    factor = _factor(config.method, encoder)
    return factor * encoder.weights * training, 2 * encoder.weights * evaluation


def _rows(config: "Config") -> dict[str, int]:
    """Returns a dict from split to the number of examples that a run uses."""
    size, data = known_sizes.TASKS[config.task], config.data
    task = config_task.declared_task(config)
    rows = {"train": size.train, "validation": size.validation}
    rows["test"] = size.test if "test" in task.splits else 0
    if data.low_resource:
        return {
            "train": min(data.low_resource, size.train),
            "validation": min(
                _LOW_RESOURCE_VALIDATION,
                data.max_validation_examples or _LOW_RESOURCE_VALIDATION,
            ),
            "test": size.validation,
        }
    if data.train_fraction:
        rows["train"] = max(1, round(data.train_fraction * size.train))
    most = {
        "train": data.most_train_examples(config.task),
        "validation": data.max_validation_examples,
        "test": data.max_test_examples,
    }
    for split, number in most.items():
        rows[split] = min(rows[split], number or rows[split])
    if data.eval_languages and task.languages:
        names = data.eval_languages
        if "all" in names:
            names = task.languages.names
        rows["test"] *= len(names)
    return rows


def _tokens(config: "Config") -> float:
    """Returns the mean number of tokens of an example, after truncation."""
    size = known_sizes.TASKS[config.task]
    return size.texts * min(size.tokens, config.data.max_length)


def _steps(train: Any, examples: Any) -> Any:
    steps = train.epochs * math.ceil(examples / train.batch_size)
    return min(steps, train.max_steps or steps)


def _validations(train: Any, steps: Any) -> Any:
    if train.validate_every_steps:
        return steps // train.validate_every_steps
    return train.epochs


def _factor(method: Any, encoder: Any) -> Any:
    """Returns a method's number of training operations per weight and token."""
    name = methods.name_of(method)
    if name in _HEAD:
        return 2
    if name in _WHOLE or getattr(method, "train_encoder", False):
        return 6
    if name == "top_layers":
        return 2 + 4 * min(method.k / encoder.blocks, 1)
    return 4
