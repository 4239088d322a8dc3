"""A small model for each kind of output, and the task that it solves."""

import dataclasses

import numpy as np

from tests.export import conftest
import tf_adapters
from tf_adapters import tasks
from tf_adapters.runs import pretraining_task

TASKS = {
    "tagging": tasks.get("ud_pos"),
    "span": tasks.get("squad"),
    "choice": tasks.get("commonsenseqa"),
    "sentence_vector": dataclasses.replace(
        tasks.get("stsb"), head="sentence_vector"
    ),
    "sentence_ranking": dataclasses.replace(
        tasks.get("stsb"),
        head="sentence_ranking",
        metrics=("mrr",),
        label_range=None,
    ),
    "masked_lm": pretraining_task.pretraining_task_of(tasks.get("sst2")),
}


def bert():
    return tf_adapters.load_encoder(str(conftest.ENCODERS / "bert"))[0]


def make_model(method, task):
    encoder = bert()
    if task.head == "masked_lm":
        head = tf_adapters.heads.MaskedLM.for_encoder(encoder)
    else:
        head = tf_adapters.heads.for_task(task)
    model = tf_adapters.adapt(encoder, method, head)
    generator = np.random.default_rng(0)
    for variable in model.trained_variables().values():
        noise = 0.3 * generator.normal(size=variable.shape)
        variable.assign(noise + (variable.name == "gamma"))
    return model
