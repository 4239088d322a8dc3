"""Loads the rows for a run's training and evaluation.

Does not import TensorFlow, so that missing or malformed data stops a run within
seconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.data.rows import load
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import split_checks
from tf_adapters.data.rows import table_checks
from tf_adapters.data.rows.sources import find_source

if TYPE_CHECKING:
    from tf_adapters.tasks.task import Task


# Splits that a run can be evaluated on, with their names in the run's result.
# Only MNLI has `validation_mismatched`.
EVALUATED = ("validation", "validation_mismatched", "test")


def resolve_labels(task: Task, data: Any) -> Task:
    """Adds the class names to a task that does not state them.

    They are read from the training data.

    Args:
        task: `Task`.
        data: `DataConfig`.
    """
    if data.file and not data.task_file:
        return table_checks.resolve_table(task)
    return load.resolve_labels(task, data.data_dir)


def load_rows(task: Task, data: Any, seed: int = 0) -> dict[str, Any]:
    """Loads and checks rows, and returns a dict from split to rows.

    `test` has only rows with labels, and is missing if there are none.
    MNLI's `validation_mismatched` is included if the data has it.

    Warns of training texts in other splits, and of classes that do not occur in
    training.

    Args:
        task: `Task` with its class names.
        data: `DataConfig`.
        seed: Integer. Determines which rows are drawn. Defaults to 0.

    Raises:
        DataError: If a split is missing, has malformed rows, or has no tags.
    """
    rows = read_rows(task, data, seed)
    split_checks.check_tags(rows, task)
    split_checks.warn_of_overlap(rows, task)
    return rows


def read_rows(task: Task, data: Any, seed: int = 0) -> dict[str, Any]:
    """Loads the same rows as `load_rows`, without checking tags and overlap."""
    return _read_main(task, data, seed) | _read_others(task, data)


def _read_main(task: Task, data: Any, seed: int) -> dict[str, Any]:
    train, validation = load.load_train_and_validation(
        task, data.data_dir, seed
    )
    test = None
    if data.low_resource:
        train, validation, test = sampling.low_resource_split(
            train, validation, data.low_resource, seed
        )
    validation = sampling.at_most(validation, data.max_validation_examples)
    if test is not None:
        return {"train": train, "validation": validation, "test": test}
    if data.train_fraction:
        number = max(1, round(data.train_fraction * len(train)))
        train = sampling.subsample(train, number, seed)
    most = data.most_train_examples(task.name)
    if most:
        train = sampling.subsample(train, most, seed)
    rows = {"train": train, "validation": validation}
    # Local copies of GLUE can have test labels that TFDS does not have.
    source = find_source(task, "test", data.data_dir)
    if source.may_have_labels:
        test = split_checks.labeled_rows(source.rows(), "test", task)
        if test:
            rows["test"] = sampling.at_most(test, data.max_test_examples)
    return rows


def _read_others(task: Task, data: Any) -> dict[str, Any]:
    others = set(task.splits) & set(EVALUATED) - {"validation", "test"}
    sources = [find_source(task, s, data.data_dir) for s in sorted(others)]
    most = data.max_validation_examples
    return {
        source.split: sampling.at_most(source.rows(), most)
        for source in sources
        if source.is_there
    }
