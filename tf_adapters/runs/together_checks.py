"""Checks that runs can be trained together as one JAX program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown
from tf_adapters.config import resolve

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.data.examples import Examples
    from tf_adapters.models.adapter_model import AdapterModel

# The value that each of these settings must have. With another value, the runs
# could not share a program.
_NEEDED: dict[str, Any] = {
    "backend": "jax",
    "distribution_strategy": "one_device",
    "data.batching": "fixed",
    "data.length_buckets": [],
    "data.windows": 1,
    "data.eval_languages": [],
    "pretrain.steps": 0,
    "train.accumulation_steps": 1,
    "train.adapter_drop": [],
    "train.calibrate": False,
    "train.callbacks": None,
    "train.early_stopping_patience": None,
    "train.log_gradient_norms": False,
    "train.snapshot_steps": None,
    "train.steps_per_loop": 1,
}


def check_settings(config: Config, is_member: bool = False) -> None:
    """Raises a `ConfigError` if a run cannot be trained together with others.

    Args:
        config: `Config` of the run.
        is_member: Whether the run trains a member of a fusion. Its settings
            are those in `members.settings`. Defaults to `False`.
    """
    # Through JSON, which has no tuples.
    settings = json.loads(json.dumps(resolve.to_dict(config)))
    found = {name: _setting(settings, name) for name in _NEEDED}
    wrong = [name for name in _NEEDED if found[name] != _NEEDED[name]]
    if wrong:
        received = ", ".join(f"`{n}` {shown(found[n])}" for n in wrong)
        raise ConfigError(
            "--executor=jax cannot train runs together with these settings: "
            f"{received}. {_advice(wrong, is_member)}, or leave --executor out."
        )
    if config.method.own_training() is not None or config.method.tasks:
        raise ConfigError(
            f"--executor=jax cannot train {config.task} with the method "
            f"`{settings['method']['name']}`, which has a training of its own: "
            "leave --executor out."
        )


def _advice(names: list[str], is_member: bool) -> str:
    """Returns the start of a sentence that says how to change settings."""
    needed = {name: _as_flag(_NEEDED[name]) for name in names}
    if is_member:
        words = (f"`members.settings.{n}` to {v}" for n, v in needed.items())
        return f"For members of fusions, set {', '.join(words)} in the study"
    flags = ",".join(f"{name}={value}" for name, value in needed.items())
    return f"Add --params_override={flags}"


def _setting(settings: dict[str, Any], name: str) -> Any:
    """Returns the value of a setting with a dotted name."""
    section, _, key = name.rpartition(".")
    return (settings[section] if section else settings)[key]


def _as_flag(value: Any) -> str:
    """Returns a value as `--params_override` reads it."""
    return value if isinstance(value, str) else json.dumps(value)


def check_models(models: list[AdapterModel]) -> None:
    """Raises a `ConfigError` if models cannot be trained together.

    Their heads must be equal, and their method must train in one phase.
    """
    first, *others = models
    if any(other.head != first.head for other in others):
        raise ConfigError(
            "--executor=jax can train runs together only if their heads are "
            "equal. The heads of these runs depend on their training "
            "examples, which differ by seed. Leave --executor out."
        )
    if first.last_phase_step(1000):
        raise ConfigError(
            "--executor=jax cannot train a method of two phases, such as a "
            "search for the weights to keep. Leave --executor out."
        )


def check_examples(examples: Examples, task: str) -> None:
    """Raises a `ConfigError` unless each of a task's examples is one input."""
    if examples.has_choices or examples.masking is not None:
        raise ConfigError(
            f"--executor=jax cannot train {task}: an example must be one text, "
            "or one pair of texts. Leave --executor out."
        )


def check_sizes(examples: list[dict[str, Examples]]) -> None:
    """Raises a `ConfigError` if runs have different numbers of examples."""
    sizes = [
        {split: len(one) for split, one in own.items()} for own in examples
    ]
    if any(own != sizes[0] for own in sizes):
        raise ConfigError(
            "--executor=jax can train runs together only if they have the same "
            "number of examples. Here the seeds have different texts, and a "
            "long text makes several examples. Leave --executor out."
        )
