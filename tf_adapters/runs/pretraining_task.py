"""The task of a pretraining: the texts of another, with hidden tokens."""

import dataclasses
from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.tasks.output_kinds import KINDS

_HEAD = "masked_lm"


def pretraining_task_of(task):
    """Returns the task that asks for hidden tokens of another one's texts."""
    return dataclasses.replace(
        task, head=_HEAD, labels=(), metrics=KINDS[_HEAD].metrics
    )


def trains_adapters_only(config, task):
    """Returns whether a run trains nothing but what its method adds.

    Args:
        config: `Config`.
        task: `Task` of the run.
    """
    settings = config.pretrain
    is_pretraining = settings.steps > 0 and task.head == _HEAD
    return is_pretraining and settings.adapters_only


def task_of_run(task, model_dir):
    """Returns the task that the adapter in a run folder answers.

    Args:
        task: The task of the run's configuration: `task` itself, but for a
            pretraining, which is configured as what it is for.
        model_dir: The run's folder.
    """
    adapter = adapter_folder.read_adapter_config(Path(model_dir) / "adapter")
    head = adapter.get("head") or {}
    return pretraining_task_of(task) if head.get("name") == _HEAD else task
