"""What a study would cost, before it runs: an estimate.

Training takes `6 x weights x tokens` operations where the encoder trains and
`4 x weights x tokens` where it is frozen and the gradient only passes through,
evaluation `2 x weights x tokens`. Only the weights of the blocks' matrix
products count: not attention's own products, embeddings, adapters and heads.
Early stopping is ignored: all epochs count.

On two cores the operations are divided by speeds that were measured; on an
accelerator by a stated part of what its maker says it can do.
"""

import dataclasses
import math

from tf_adapters import methods
from tf_adapters.config import task as config_task
from tf_adapters.launch import fusion_members
from tf_adapters.launch import planned_run
from tf_adapters.papers.studies.grid import known_sizes

# Operations a second of two cores in float32, from the examples a second of
# docs/results.md (MiniLM, Houlsby 64): SST-2 94 and 302 and MRPC 32 and 107, in
# training and inference. With 13.1 and 53.4 tokens that is 52 and 73, and 84
# and 121 billion.
_TRAINING, _EVALUATION = 62e9, 103e9
# Seconds of a run in which no step is made: imports, data, weights, graphs.
_START = 40.0
# An NVIDIA A100's bfloat16 rate, and the part of it that is taken as reached.
_ACCELERATOR = 0.4 * 312e12
ACCELERATOR = "A100 at 40 % of 312 TFLOP/s"
# Methods that train the whole encoder, and methods that train a head alone.
_WHOLE = ("full", "mixout", "diff_pruning")
_HEAD = ("head_only",)
# A search over other models, whose cost is what it is given.
_SEARCH = "no_bert"
_LOW_RESOURCE_VALIDATION = 1000  # He et al. 2021, section 3.2.


@dataclasses.dataclass(frozen=True)
class Cost:
    """What runs cost.

    Attributes:
        runs: How many there are.
        two_core_seconds: On two cores, one run at a time.
        accelerator_seconds: On the accelerator.
        unknown: Names of tasks and encoders whose sizes are unknown; their
            runs are not in the seconds.
    """

    runs: int
    two_core_seconds: float
    accelerator_seconds: float
    unknown: tuple


def cost_of(runs):
    """Returns the `Cost` of a study's runs.

    Members of fusions are trained too, each once, unless a run of the study
    trains the same.

    Args:
        runs: List of `Run`.
    """
    configs = {run.id: run.config for run in runs}
    for run in runs:
        if run.config.members.tasks and not run.config.method.adapters:
            for member in fusion_members.plan_members(run.config):
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


def _unknown(config):
    """Returns the names of a run's tasks and encoder without a known size."""
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


def operations_of(config):
    """Returns the operations of a run's training and of its evaluation.

    Args:
        config: `Config` of known sizes.
    """
    encoder = known_sizes.encoder_size(config.encoder)
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


def _rows(config):
    """Returns how many examples of a task a run trains and evaluates on."""
    size, data = known_sizes.TASKS[config.task], config.data
    task = config_task.declared_task(config)
    rows = {"train": size.train, "validation": size.validation}
    rows["test"] = size.test if "test" in task.splits else 0
    if data.low_resource:
        return {
            "train": min(data.low_resource, size.train),
            "validation": _LOW_RESOURCE_VALIDATION,
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


def _tokens(config):
    """Returns the tokens of an example, texts cut to the run's length."""
    size = known_sizes.TASKS[config.task]
    return size.texts * min(size.tokens, config.data.max_length)


def _steps(train, examples):
    steps = train.epochs * math.ceil(examples / train.batch_size)
    return min(steps, train.max_steps or steps)


def _validations(train, steps):
    if train.validate_every_steps:
        return steps // train.validate_every_steps
    return train.epochs


def _factor(method, encoder):
    """Returns the operations of training by weight and token."""
    name = methods.name_of(method)
    if name in _HEAD:
        return 2
    if name in _WHOLE or getattr(method, "train_encoder", False):
        return 6
    if name == "top_layers":
        return 2 + 4 * min(method.k / encoder.blocks, 1)
    return 4
