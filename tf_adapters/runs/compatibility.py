"""Checks that an adapter, an encoder and a configuration fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters import heads
from tf_adapters.common.checks import check_known
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.heads.windows import check_pools_windows
from tf_adapters.models import saving
from tf_adapters.tasks.output_kinds import KINDS

if TYPE_CHECKING:
    from tf_adapters.heads.head import Head
    from tf_adapters.tasks.task import Task


def check_labels(head: Head | None, task: Task, adapter: Any) -> None:
    """Raises an `AdapterError` if an adapter's head does not fit a task.

    The kind of head must be the same. So must the class names, unless the task
    takes its class names from the data.

    Args:
        head: `Head` of the adapter, or `None`.
        task: `Task` of the run.
        adapter: Path of the adapter folder, for the message.
    """
    labels = () if head is None else head.labels
    kind = None if head is None else heads.to_config(head)["name"]
    if kind and KINDS[kind].is_pretraining and task.head != kind:
        raise saving.AdapterError(
            f"The adapter in {adapter} was pretrained with masked tokens and "
            "cannot solve a task. Give the folder of a run that was trained "
            "from it, or train one with --init_adapter."
        )
    same_kind = kind == task.head
    # If a task takes its class names from its data, an adapter with any names
    # fits, as long as its head is of the same kind.
    if not same_kind or (task.labels and labels != tuple(task.labels)):
        raise saving.AdapterError(
            f"The adapter in {adapter} predicts "
            f"{cut(', '.join(labels) or f'a {kind}')}, but task `{task.name}` "
            f"is a {task.head} of "
            f"{cut(', '.join(task.labels) or 'its own labels')}. "
            "Give the task it was trained on."
        )


def check_windows(windows: int, task: Task) -> None:
    """Raises a `UserError` if a task cannot use the setting `data.windows`.

    `windows` is the largest number of inputs into which a long text is split.
    """
    if windows == 1:
        return
    check_pools_windows(heads.HEADS[task.head], task.head)
    if len(task.text_fields) > 1:
        raise ConfigError(
            "`data.windows` cuts one long text into several inputs, but task "
            f"`{task.name}` reads {' and '.join(task.text_fields)} together. "
            f"Leave it out. Received: {windows}"
        )


def check_length(max_length: int, encoder: Any, name: str) -> None:
    """Raises an error if an encoder has fewer than `max_length` positions.

    `name` is the name of the encoder, for the message.
    """
    longest = getattr(encoder.backbone, "max_sequence_length", None)
    if longest is not None and max_length > longest:
        raise ConfigError(
            f"`data.max_length` is {max_length}, but encoder `{name}` has "
            f"{longest} positions. Lower --max_length."
        )


def check_languages(named: Any, evaluated: Any, task: Task) -> None:
    """Raises an error if a key of `language_adapters` is not a language.

    Without this check, a misspelled language would be evaluated with another
    language's adapter.

    Args:
        named: Languages that have an adapter.
        evaluated: Languages that the run is evaluated on.
        task: `Task` of the run.
    """
    names = task.languages.names if task.languages else ()
    for language in set(named) - set(evaluated):
        # Treebank folders have names like `en_ewt`. `language` may not be a
        # string: YAML reads `no`, the code of Norwegian, as false.
        code = str(language).partition("_")[0]
        check_known("language of `language_adapters`", code, names, ConfigError)
