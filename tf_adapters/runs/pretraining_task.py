"""The task of pretraining: predicting masked tokens in another task's texts."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from tf_adapters.common import adapter_folder
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    import os

    from tf_adapters.tasks.task import Task


_HEAD = "masked_lm"


def pretraining_task_of(task: Task) -> Task:
    """Returns the task of predicting masked tokens in the texts of `task`."""
    return dataclasses.replace(
        task, head=_HEAD, labels=(), metrics=KINDS[_HEAD].metrics
    )


def predicts_hidden_tokens(task: Task) -> bool:
    """Returns whether `task` is the task of predicting masked tokens."""
    return task.head == _HEAD


def task_of_run(task: Task, model_dir: str | os.PathLike[str]) -> Task:
    """Returns the task that the adapter in a run folder was trained on.

    The configuration of a pretraining run names the task that comes after the
    pretraining. For such a run, returns the task of predicting masked tokens.
    For any other run, returns `task`.

    Args:
        task: `Task` in the run's configuration.
        model_dir: Path of the run folder.
    """
    adapter = adapter_folder.read_adapter_config(Path(model_dir) / "adapter")
    head = adapter.get("head") or {}
    return pretraining_task_of(task) if head.get("name") == _HEAD else task
