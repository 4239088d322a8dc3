"""Exports three small, untrained models once for all tests here.

The encoders are the random ones in tests/fixtures. The weights of methods are
large, so that they affect every answer.
"""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.methods import cases
import tf_adapters
from tf_adapters import tasks
from tf_adapters.config import resolve
from tf_adapters.export import saved_model
from tf_adapters.models import saving

ENCODERS = Path(__file__).parents[1] / "fixtures" / "adapters" / "encoders"
MAX_LENGTH = 16
# Of the heads of these tasks; that of others is 1.
TEMPERATURES = {"sst2": 2.0, "wnli": 0.5}
SENTENCES = [
    "the film is good",
    "it was bad and dull",
    "very",
    "",
    "not a plot",
]


@dataclasses.dataclass
class Exported:
    """A model and the folder of its export."""

    model: tf_adapters.AdapterModel
    packer: tf_adapters.TextPacker
    task: tasks.Task
    folder: Path

    @functools.cached_property
    def loaded(self):
        """The SavedModel, loaded into this process."""
        return tf.saved_model.load(str(self.folder))

    def expected(self, *texts):
        """Returns the model's answer to columns of texts, with NumPy."""
        features = self.packer(*texts)
        outputs = self.model(features, training=False).numpy()
        if self.task.head == "regression":
            return {"score": outputs[:, 0]}
        ids = outputs.argmax(axis=1)
        outputs = outputs / TEMPERATURES.get(self.task.name, 1.0)
        exponentials = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return {
            "label": [self.task.labels[i] for i in ids],
            "label_id": ids,
            "probabilities": exponentials / exponentials.sum(1, keepdims=True),
        }


@functools.cache
def make_packer(encoder):
    """Returns a packer for all models of an encoder: tracing is slow."""
    tokenizer = tf_adapters.load_encoder(str(ENCODERS / encoder))[1]
    return tf_adapters.TextPacker(tokenizer, MAX_LENGTH)


def make_model(encoder, method, task, seed=0, quantize=None):
    """Returns a model with large random weights, and its packer.

    Its answers differ between texts by far more than any tolerance.
    """
    packer = make_packer(encoder)
    encoder, _ = tf_adapters.load_encoder(
        str(ENCODERS / encoder), quantize=quantize
    )
    own = {"temperature": TEMPERATURES.get(task.name, 1.0)}
    head = tf_adapters.heads.for_task(
        task, **(own if task.head == "classification" else {})
    )
    model = cases.build(encoder, method, head)
    generator = np.random.default_rng(seed)
    for variable in model.trained_variables().values():
        noise = 0.3 * generator.normal(size=variable.shape)
        # Norms stay norms.
        variable.assign(noise + (variable.name == "gamma"))
    outputs = model(packer(*[SENTENCES] * len(task.text_fields))).numpy()
    layer = model.head_layer
    centered = layer.bias.numpy() - outputs.mean(axis=0)
    scale = 1 / outputs.std(axis=0).mean()
    layer.bias.assign(centered * scale)
    layer.kernel.assign(layer.kernel.numpy() * scale)
    return model, packer


def make_run(folder, task_name, method):
    """Writes such a model's run folder; returns model, packer and config."""
    task = tasks.get(task_name)
    model, packer = make_model("bert", method, task)
    saving.save_adapter(model, folder / "adapter")
    config = resolve.resolve_config(
        {
            "task": task_name,
            "encoder": str(ENCODERS / "bert"),
            "method": tf_adapters.methods.to_config(method),
            "data": {"max_length": MAX_LENGTH},
            # An export ignores the distribution strategy of the run.
            "distribution_strategy": "mirrored",
        }
    )
    return model, packer, config


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory):
    """A finished run of WNLI: its folder, model, packer and configuration."""
    folder = tmp_path_factory.mktemp("run")
    method = tf_adapters.methods.Houlsby(units=4)
    return folder, *make_run(folder, "wnli", method)


@pytest.fixture(scope="session")
def pair_classifier(run_folder):
    folder, model, packer, config = run_folder
    path = saved_model.export_run(config, folder)
    return Exported(model, packer, tasks.get("wnli"), path)


@pytest.fixture(scope="session")
def pair_regression(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "similarity"
    # The existing versions determine the next one.
    (folder / "9").mkdir(parents=True)
    (folder / "10").mkdir()
    (folder / ".11.partial").mkdir()
    (folder / "notes").mkdir()
    task = tasks.get("stsb")
    model, packer = make_model("bert", tf_adapters.methods.Pfeiffer(4), task)
    path = saved_model.export_model(model, packer, folder, task.text_fields)
    return Exported(model, packer, task, path)


@pytest.fixture(scope="session")
def byte_pair_classifier(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "reviews"
    task = tasks.get("sst2")
    model, packer = make_model("roberta", tf_adapters.methods.BitFit(), task)
    path = saved_model.export_model(model, packer, folder, task.text_fields)
    return Exported(model, packer, task, path)
