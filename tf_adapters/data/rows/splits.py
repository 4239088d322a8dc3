"""Loads the task and the rows of a configuration.

Does not import TensorFlow, so that missing or malformed data stops a run within
seconds.
"""

import dataclasses

from tf_adapters import tasks
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import cut
from tf_adapters.data.rows import load
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import split_checks
from tf_adapters.data.rows import table_checks

# Splits that a run can be evaluated on, by their names in its result. Only MNLI
# has `validation_mismatched`.
EVALUATED = ("validation", "validation_mismatched", "test")


def declared_task(config, check_files=False):
    """Returns the task of a configuration as declared, without reading data.

    Args:
        config: `Config`. Its `task`, `data` and `train.select_by` are used.
        check_files: Whether the tables, or the data files of a task file, must
            exist. Defaults to `False`.

    Raises:
        ConfigError: If the task does not have the metric `train.select_by`.
    """
    if config.data.task_file:
        task = tasks.load_task_file(config.data.task_file, check_files)
    elif config.data.file:
        task = tasks.task_of_table(config.task, config.data, check_files)
    else:
        task = tasks.get(config.task)
    return _selected_by(task, config.train.select_by)


def _selected_by(task, metric):
    """Moves the metric that selects weights to the front of a task's."""
    if metric is None:
        return task
    if metric not in task.kind.metrics:
        raise ConfigError(
            f"`train.select_by`: task `{task.name}` can be measured by "
            f"{', '.join(task.kind.metrics)}. Received: {cut(metric)}"
        )
    others = tuple(name for name in task.metrics if name != metric)
    return dataclasses.replace(task, metrics=(metric, *others))


def check_data_exists(config):
    """Raises a `UserError` if the training data is not found; reads none."""
    task = declared_task(config, check_files=True)
    load.check_source_exists(task, "train", config.data.data_dir)


def get_task(config):
    """Returns the task of a configuration, with its class names.

    If the task does not declare them, they are read from the training data.
    """
    task = declared_task(config, check_files=True)
    if config.data.file and not config.data.task_file:
        return table_checks.resolve_table(task)
    return load.resolve_labels(task, config.data.data_dir)


def load_rows(config, task):
    """Returns a dict from split to rows, checked.

    `test` has only rows with labels, and is missing if there are none.
    MNLI's `validation_mismatched` is included if the data has it.

    Warns of training texts in other splits, and of classes that do not occur in
    training.

    Args:
        config: `Config`.
        task: `Task`, as from `get_task`.

    Raises:
        DataError: If a split is missing, has malformed rows, or has no tags.
    """
    rows = read_rows(config, task)
    split_checks.check_tags(rows, task)
    split_checks.warn_of_overlap(rows, task)
    return rows


def read_rows(config, task):
    """Returns the same as `load_rows`, without checking tags and overlap."""
    return _load_rows(config, task) | _load_others(config, task)


def _load_rows(config, task):
    data = config.data
    train, validation = load.load_train_and_validation(
        task, data.data_dir, config.seed
    )
    if data.low_resource:
        splits = sampling.low_resource_split(
            train, validation, data.low_resource, config.seed
        )
        return dict(zip(("train", "validation", "test"), splits, strict=True))
    validation = sampling.at_most(validation, data.max_validation_examples)
    if data.train_fraction:
        number = max(1, round(data.train_fraction * len(train)))
        train = sampling.subsample(train, number, config.seed)
    most = data.most_train_examples(task.name)
    if most:
        train = sampling.subsample(train, most, config.seed)
    rows = {"train": train, "validation": validation}
    # Local copies of GLUE can have test labels that TFDS does not have.
    if load.may_have_labels(task, "test", data.data_dir):
        test = split_checks.labeled_rows(
            load.load_split(task, "test", data.data_dir), "test", task
        )
        if test:
            rows["test"] = sampling.at_most(test, data.max_test_examples)
    return rows


def _load_others(config, task):
    others = set(task.splits) & set(EVALUATED) - {"validation", "test"}
    data_dir, most = config.data.data_dir, config.data.max_validation_examples
    return {
        split: sampling.at_most(load.load_split(task, split, data_dir), most)
        for split in sorted(others)
        if load.has_split(task, split, data_dir)
    }
