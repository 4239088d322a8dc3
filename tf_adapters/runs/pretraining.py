"""Task-adaptive pretraining, before the training on the task itself.

The weights that the method trains are first trained with masked language
modeling on the task's own training texts, without labels. Then they are trained
on the task (He et al. 2021, section 3.1, TAPT; Han et al. 2021, task-specific
pretraining). The pretraining is a separate run in its own folder, so that a
stopped command can resume it.
"""

from __future__ import annotations

from collections.abc import Callable
import dataclasses
import math
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.encoders import masked_lm_heads
from tf_adapters.runs import pretraining_task
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs import strategies
from tf_adapters.runs import training_run
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.config.settings import Config
    from tf_adapters.runs.task_data import TaskData
    from tf_adapters.tasks.task import Task


def train_pretraining(
    config: Config, data: TaskData, folder: Path, overwrite: bool = False
) -> Config:
    """Pretrains a run's weights on the run's texts, and prints the loss.

    The weights are trained to predict masked tokens. If an earlier process has
    finished the pretraining, its result is used.

    Args:
        config: `Config` in which `pretrain.steps` is set.
        data: `TaskData`. Labels are ignored.
        folder: Path of the pretraining's run folder.
        overwrite: Whether to repeat a finished pretraining. Default: `False`.

    Returns:
        `config` with `init_adapter` set to the pretrained adapter.

    Raises:
        ConfigError: If the method trains only a head, or `init_adapter` is set.
    """
    _check(config)
    own = _config(config, len(data.rows["train"]))
    texts = data.select(("train", "validation"))
    result = None
    if not overwrite:
        strategy = strategies.strategy_of(own)
        result = run_folder_of_workers.finished_on_chief(
            strategy, folder, own, texts.fingerprints
        )
    if result is None:
        result = training_run.train_experiment(
            own,
            dataclasses.replace(
                texts, task=pretraining_task.pretraining_task_of(data.task)
            ),
            folder,
            test=False,
            overwrite=overwrite,
            prepare=lambda model: _prepare(model, config),
        )
    before, after = result["before"], result["validation"]
    print(
        f"pretraining: loss of masked tokens on the validation texts "
        f"{-before['log_likelihood']:.4f} before, "
        f"{-after['log_likelihood']:.4f} after {result['steps']} steps",
        flush=True,
    )
    return dataclasses.replace(config, init_adapter=str(folder))


def _check(config: Config) -> None:
    if isinstance(config.method, methods.HeadOnly):
        raise _nothing_to_carry_over()
    if config.init_adapter:
        raise ConfigError(
            "Both `init_adapter` and `pretrain.steps` set the initial "
            "weights. Give one of the two."
        )


def _config(config: Config, num_texts: int) -> Config:
    """Returns the `Config` of the pretraining that precedes a run.

    `config` is the `Config` of the run itself. `num_texts` is the number of
    training texts.
    """
    steps, size = config.pretrain.steps, config.pretrain.batch_size
    settings = dataclasses.replace(
        config.train,
        learning_rate=config.pretrain.learning_rate,
        batch_size=size,
        epochs=math.ceil(steps / math.ceil(num_texts / size)),
        max_steps=steps,
        validate_every_steps=None,
        early_stopping_patience=None,
        calibrate=False,
    )
    # Pretraining reads only the beginning of each text.
    data = dataclasses.replace(config.data, eval_languages=(), windows=1)
    return dataclasses.replace(config, train=settings, data=data)


def _nothing_to_carry_over() -> ConfigError:
    return ConfigError(
        "Pretraining trains the method's weights without its head, but with "
        "these settings the method has no other weights. Leave "
        "--pretrain_steps out, or use a method that adds weights to the "
        "encoder or trains some of them."
    )


def preparation_of(task: Task, config: Config) -> Callable[..., Any] | None:
    """Returns a function to call with a run's model before training, or `None`.

    If the task is to predict masked tokens, as when a language adapter is
    trained, the function loads the encoder checkpoint's own head for masked
    tokens, if there is one. For other tasks, returns `None`.
    """
    if not KINDS[task.head].is_pretraining:
        return None
    return lambda model: _load_head(model, config)


def _load_head(model: Any, config: Config) -> bool:
    if masked_lm_heads.load_masked_lm_head(model, config.encoder):
        print("The checkpoint's own head for masked tokens is trained further.")
        return True
    print(
        "The checkpoint has no head for masked tokens: a new one is trained "
        "from scratch."
    )
    return False


def _prepare(model: Any, config: Config) -> None:
    own_head = {variable.path for variable in model.head_layer.weights}
    if own_head.issuperset(model.trained_variables()):
        raise _nothing_to_carry_over()
    if not config.pretrain.adapters_only:
        _load_head(model, config)
        return
    has_head = masked_lm_heads.load_masked_lm_head(model, config.encoder)
    _check_adapters_only(model, config.encoder, has_head)


def _check_adapters_only(model: Any, encoder: Any, has_head: Any) -> None:
    """Raises an error if a run cannot use `pretrain.adapters_only`.

    Otherwise prints that only the adapters are trained.

    Args:
        model: `AdapterModel`.
        encoder: Name of the encoder, for the message.
        has_head: Whether the checkpoint's head for masked tokens was loaded.

    Raises:
        ConfigError: If the checkpoint has no head for masked tokens, or the
            method adds no weights to the encoder.
    """
    if not has_head:
        raise ConfigError(
            "`pretrain.adapters_only` freezes the checkpoint's head for "
            f"masked tokens, but encoder `{encoder}` has no such head. Leave "
            "the setting out, or give a checkpoint that was saved with its "
            "head."
        )
    if not any(group == "adapters" for group, *_ in model.variable_groups()):
        raise ConfigError(
            "`pretrain.adapters_only` trains only the weights that the method "
            "adds to the encoder, but this method adds none. Leave the "
            "setting out."
        )
    print("While tokens are predicted, only the adapters train.")
