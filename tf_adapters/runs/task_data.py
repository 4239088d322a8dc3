"""Loads the task and the data that a configuration names.

This module does not import TensorFlow, so that a run without data stops within
seconds.
"""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.config import task as config_task
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.data.rows.sources import find_source
from tf_adapters.tasks.task import Task

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config


@dataclasses.dataclass(frozen=True)
class TaskData:
    """A task and its rows.

    Attributes:
        task: `Task` with its class names.
        rows: Dict from split to rows.
        fingerprints: Dict from split to the fingerprint of its rows. Default:
            computed from `rows`.
    """

    task: Task
    rows: dict[str, list[Any]]
    # Never `None` once the object exists.
    fingerprints: dict[str, str] | Any = None

    def __post_init__(self) -> None:
        if self.fingerprints is None:
            found = sampling.fingerprints(self.rows)
            object.__setattr__(self, "fingerprints", found)

    def select(self, splits: Any) -> "TaskData":
        """Returns a copy that has only the given splits."""
        return TaskData(
            self.task,
            {split: self.rows[split] for split in splits},
            {split: self.fingerprints[split] for split in splits},
        )


def load_task_data(config: "Config") -> "TaskData":
    """Returns the `TaskData` of a `Config`; see `splits.load_rows`."""
    task = get_task(config)
    return TaskData(task, splits.load_rows(task, config.data, config.seed))


def get_task(config: "Config") -> Task:
    """Returns the task of a `Config`, with its class names."""
    task = config_task.declared_task(config, check_files=True)
    return splits.resolve_labels(task, config.data)


def check_data_exists(config: "Config") -> None:
    """Raises a `UserError` if the training data do not exist.

    The data are not read.
    """
    task = config_task.declared_task(config, check_files=True)
    find_source(task, "train", config.data.data_dir).check()
