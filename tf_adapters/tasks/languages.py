"""Languages of tasks with zero-shot transfer.

A model is trained in one language and evaluated in many.
"""

import dataclasses
from typing import TYPE_CHECKING

from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task

# The keys of the dict that `averages` returns.
AVERAGES = ("all", "target", "distant")


@dataclasses.dataclass(frozen=True)
class Languages:
    """The languages of a task in zero-shot transfer.

    Attributes:
        names: Codes of the languages in the order of the paper's table.
        distant: Codes of the languages over which the average named `distant`
            is taken; see `averages`.
        folder: Path of a language's local folder, with the placeholder
            `{language}`. Folders whose name continues with `_`, as for
            treebanks (`en_ewt`), are found too.
        source: Name in TensorFlow Datasets, in which `{language}` is a
            placeholder.
        trained: Code of the training language. Defaults to `"en"`.
        source_codes: Dict from a language's code to its code in TensorFlow
            Datasets, if they differ.
    """

    names: tuple[str, ...]
    distant: tuple[str, ...]
    folder: str
    source: str
    trained: str = "en"
    source_codes: dict[str, str] = dataclasses.field(
        default_factory=dict[str, str]
    )


def in_language(task: "Task", language: str) -> "Task":
    """Returns a copy of a task in another language.

    Args:
        task: `Task` with `languages`.
        language: Code of the language, or the value of `{language}` in a local
            folder (such as `en_ewt`).

    Raises:
        UserError: If `task.languages` is `None`.
    """
    languages = task.languages
    if languages is None:
        raise UserError(
            f"Task `{task.name}` has one language, so it cannot be read in "
            "others, as --eval_languages and --languages ask."
        )
    return dataclasses.replace(
        task,
        source=languages.source.format(
            language=languages.source_codes.get(language, language)
        ),
        folder=languages.folder.format(language=language),
        language=language,
        train_task=None,
    )


def averages(
    values: dict[str, float], languages: Languages
) -> dict[str, float]:
    """Computes averages over languages as in He et al. 2021, table 3.

    Args:
        values: Dict from language to a number.
        languages: `Languages` of the task.

    Returns:
        Dict with the averages over `all` languages, over `target` (all but the
        training language) and over `distant` languages. An average is omitted
        if `values` has no such language.
    """
    codes = {language: language.split("_")[0] for language in values}
    groups = {
        "all": list(values),
        "target": [v for v in values if codes[v] != languages.trained],
        "distant": [v for v in values if codes[v] in languages.distant],
    }
    return {
        group: sum(values[member] for member in members) / len(members)
        for group, members in groups.items()
        if members
    }
