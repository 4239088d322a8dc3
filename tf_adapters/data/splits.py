"""The task and the rows of a configuration.

Imports no TensorFlow, so that missing or malformed data stops a run within
seconds, before anything is built.
"""

from tf_adapters import tasks
from tf_adapters.data import sampling
from tf_adapters.data import sources


def get_task(config):
    """Returns the task of a configuration, with its class names."""
    if config.data.task_file:
        task = tasks.load_task_file(config.data.task_file)
    else:
        task = tasks.get(config.task)
    return sources.resolve_labels(task, config.data.data_dir)


def load_rows(config, task):
    """Returns the rows of each split as a dict; `test` only if labelled."""
    data = config.data
    train, validation = sources.load_train_and_validation(
        task, data.data_dir, config.seed
    )
    if data.low_resource:
        splits = sampling.low_resource_split(
            train, validation, data.low_resource, config.seed
        )
        return dict(zip(("train", "validation", "test"), splits, strict=True))
    if data.max_train_examples:
        train = sampling.subsample(train, data.max_train_examples, config.seed)
    rows = {"train": train, "validation": validation}
    # Local copies of GLUE may have labelled test rows where TFDS has none.
    if sources.has_split(task, "test", data.data_dir):
        test = sources.load_split(task, "test", data.data_dir)
        if all(row["label"] is not None for row in test):
            rows["test"] = test
    return rows
