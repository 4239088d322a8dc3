"""The built-in tasks, as data. To add a task, add an entry to `TASKS`."""

from tf_adapters.common.checks import check_known
from tf_adapters.tasks.adapter_fusion import ARGUMENT
from tf_adapters.tasks.adapter_fusion import COMMONSENSE
from tf_adapters.tasks.adapter_fusion import INFERENCE
from tf_adapters.tasks.builtin import BUILTIN
from tf_adapters.tasks.glue import GLUE
from tf_adapters.tasks.houlsby_extra import HOULSBY_EXTRA
from tf_adapters.tasks.houlsby_extra import SQUAD
from tf_adapters.tasks.table_task import task_of_table
from tf_adapters.tasks.tae import TAE
from tf_adapters.tasks.task import Task
from tf_adapters.tasks.task_file import load_task_file
from tf_adapters.tasks.xtreme import XTREME

TASKS = {
    task.name: task
    for task in (
        *BUILTIN,
        *GLUE,
        *TAE,
        *INFERENCE,
        ARGUMENT,
        *HOULSBY_EXTRA,
        *COMMONSENSE,
        *XTREME,
        SQUAD,
    )
}

__all__ = ["TASKS", "Task", "get", "load_task_file", "task_of_table"]

_OWN_TASK = (
    "A task of your own needs no code: give its table with --data=x.csv, or "
    "describe it in a YAML file and give that with --task_file."
)


def get(name: str) -> Task:
    """Returns the built-in task called `name`.

    Args:
        name: String. A key of `TASKS`.

    Raises:
        UserError: If there is no such task.
    """
    check_known("task", name, sorted(TASKS), hint=_OWN_TASK)
    return TASKS[name]
