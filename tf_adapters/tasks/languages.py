"""Tasks that are trained in one language and evaluated in many."""

import dataclasses

from tf_adapters.common.errors import UserError

# What `averages` returns.
AVERAGES = ("all", "target", "distant")


@dataclasses.dataclass(frozen=True)
class Languages:
    """The languages of a task in zero-shot transfer.

    Attributes:
        names: Codes of the languages in the order of the paper's table.
        distant: Those that the paper's average "Distant" is over.
        folder: Local folder of a language, with `{language}` in it. A folder
            that goes on with `_`, as treebanks do (`en_ewt`), is found too.
        source: Name in TensorFlow Datasets, with `{language}` in it or not.
        trained: Code of the language of training.
        source_codes: From a language's code to that in TensorFlow Datasets,
            where it is another.
    """

    names: tuple[str, ...]
    distant: tuple[str, ...]
    folder: str
    source: str
    trained: str = "en"
    source_codes: dict[str, str] = dataclasses.field(default_factory=dict)


def in_language(task, language):
    """Returns a task as it is in another language.

    Args:
        task: `Task` with `languages`.
        language: Code of a language, or the rest of a local folder's name
            (`en_ewt`).

    Raises:
        UserError: If the task has no languages.
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


def averages(values, languages):
    """Returns the averages of He et al. 2021, table 3.

    Args:
        values: Dict from language to a number.
        languages: `Languages`.

    Returns:
        Dict with `all`, `target` (all but the language of training) and
        `distant`; an average over nothing is left out.
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
