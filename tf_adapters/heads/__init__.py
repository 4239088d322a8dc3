"""Heads, one file for each kind of output.

A head owns everything about a kind of output: targets from rows, what it reads
of the encoder, loss, predictions for metrics, and decoding for people.
"""

import dataclasses

from tf_adapters.heads.classification import Classification
from tf_adapters.heads.regression import Regression

HEADS = {"classification": Classification, "regression": Regression}


def for_task(task):
    """Returns the head of a task."""
    if task.head == "classification":
        return Classification(labels=task.labels)
    return HEADS[task.head]()


def to_config(head):
    """Returns a head as a dict of plain values with its `name`."""
    name = next(key for key, cls in HEADS.items() if cls is type(head))
    return {"name": name, **dataclasses.asdict(head)}


def from_config(config):
    """Returns the head that `to_config` described."""
    options = dict(config)
    name = options.pop("name")
    if name not in HEADS:
        raise ValueError(
            f"Unknown head `{name}`. Known heads: {', '.join(HEADS)}"
        )
    return HEADS[name](**options)
