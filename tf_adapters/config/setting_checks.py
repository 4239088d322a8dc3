"""Checks the values of settings, and that no two settings conflict."""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


# The largest seed that NumPy and dropout accept.
_MAX_SEED = 2**32 - 1
_MINIMA = {
    "seed": 0,
    "data.doc_stride": 1,
    "data.windows": 1,
    "data.window_stride": 1,
    "data.max_train_examples": 1,
    "data.max_validation_examples": 1,
    "data.max_test_examples": 1,
    "data.low_resource": 1,
    "train.learning_rate": 0.0,
    "train.epochs": 1,
    "train.batch_size": 1,
    "train.eval_batch_size": 1,
    "train.validate_every_steps": 1,
    "train.accumulation_steps": 1,
    "train.max_steps": 1,
    "train.min_steps": 1,
    "train.steps_per_loop": 1,
    "train.snapshot_steps": 1,
    "train.early_stopping_patience": 1,
    "train.weight_decay": 0.0,
    "train.warmup_fraction": 0.0,
    "pretrain.steps": 0,
    "search.trials": 0,
    "pretrain.learning_rate": 0.0,
    "pretrain.batch_size": 1,
    "train.clip_norm": 1e-12,
    "train.checkpoint_seconds": 0.0,
}


def check_setting_values(config: Config) -> None:
    """Raises a `ConfigError` if a value of a `Config` is invalid.

    The settings of the method and the head are not checked here.
    """
    if not isinstance(config.head, dict | None):
        raise ConfigError(
            "`head` must be a mapping of the head's settings. Received: "
            f"{shown(config.head)}"
        )
    if not isinstance(config.members.settings, dict | None):
        raise ConfigError(
            "`members.settings` must be a mapping of settings, such as "
            "{method: lora}; in --params_override, members.settings.method="
            f"lora. Received: {shown(config.members.settings)}"
        )
    for name, least in _MINIMA.items():
        value = operator.attrgetter(name)(config)
        # This also rejects NaN and infinity.
        if value is not None and not least <= value < math.inf:
            raise ConfigError(
                f"`{name}` must be at least {least}. Received: {cut(value)}"
            )
    if config.seed > _MAX_SEED:
        raise ConfigError(
            f"`seed` must be at most {_MAX_SEED}. Received: {config.seed}"
        )
    if config.train.warmup_fraction > 1:
        raise ConfigError(
            "`train.warmup_fraction` is a fraction of the steps, from 0 to 1. "
            f"Received: {config.train.warmup_fraction}"
        )
    fraction = config.data.train_fraction
    if fraction is not None and not 0 < fraction <= 1:
        raise ConfigError(
            "`data.train_fraction` is a fraction of the training examples, "
            f"above 0 and at most 1. Received: {fraction}"
        )
    _check_adapter_drop(config.train.adapter_drop)
    _check_one_size(config.data)
    _check_stride(config.data)
    _check_examples_of(config.data.train_examples_of)
    _check_stack(config)


def _check_stack(config: Config) -> None:
    adapters = config.language_adapters
    if adapters is not None and not (
        isinstance(adapters, dict)
        and all(isinstance(v, str) for v in adapters.values())
    ):
        raise ConfigError(
            "`language_adapters` is a mapping from a language to the folder of "
            f"its adapter. Received: {shown(adapters)}"
        )
    if adapters and not config.stack_on:
        raise ConfigError(
            "`language_adapters` replace the adapter that the task's adapter "
            "was trained on. Name that adapter with --stack_on=<folder>."
        )
    method = config.method if isinstance(config.method, dict) else {}
    if config.stack_on and method.get("name") == "fusion":
        raise ConfigError(
            "A fusion cannot be stacked on another adapter: leave --stack_on "
            "out."
        )


def _check_adapter_drop(between: Any) -> None:
    if between and not (len(between) == 2 and 0 <= between[0] <= between[1]):
        raise ConfigError(
            "`train.adapter_drop` is the smallest and the largest number of "
            f"blocks without adapters, such as [0, 5]. Received: {between}"
        )


def _check_one_size(data: Any) -> None:
    names = ("max_train_examples", "train_fraction", "low_resource")
    given = {name: getattr(data, name) for name in names}
    given = {name: value for name, value in given.items() if value}
    if len(given) > 1:
        said = " and ".join(f"`data.{name}` ({v})" for name, v in given.items())
        raise ConfigError(
            f"{said} both set the number of training examples. Give one of the "
            "two."
        )
    if data.low_resource and data.train_examples_of:
        raise ConfigError(
            "`data.low_resource` sets the number of training examples of each "
            "task, so `data.train_examples_of` has no effect. Give one of the "
            "two."
        )


def _check_stride(data: Any) -> None:
    room = data.max_length - 2
    if data.window_stride is not None and data.window_stride > room:
        raise ConfigError(
            f"`data.window_stride` must be at most {room}, the tokens that fit "
            f"between the special ones of `data.max_length` {data.max_length}: "
            "a larger one would leave tokens between two windows unread. "
            f"Received: {data.window_stride}"
        )


def _check_examples_of(numbers: Any) -> None:
    if numbers is not None and not (
        isinstance(numbers, dict)
        and all(type(n) is int and n > 0 for n in numbers.values())
    ):
        raise ConfigError(
            "`data.train_examples_of` is a mapping from a task to its number "
            "of training examples, such as {rte: 250}. Received: "
            f"{shown(numbers)}"
        )
