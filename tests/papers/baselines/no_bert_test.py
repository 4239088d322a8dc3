"""Tests the baseline without an encoder: its networks and the search."""

import json
import os
import signal
import types

import keras
import numpy as np
import optuna
import pytest

from tests import commands
import tf_adapters
from tf_adapters import tasks
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.heads.metrics import compute_metrics
from tf_adapters.papers.baselines import no_bert
from tf_adapters.papers.baselines import no_bert_model
from tf_adapters.papers.baselines import no_bert_search
from tf_adapters.papers.baselines import no_bert_training
from tf_adapters.runs import remote_folder
from tf_adapters.runs.task_data import TaskData

GENERATOR = np.random.default_rng(0)
TABLE = GENERATOR.normal(size=(20, 6)).astype("float32")
NETWORK = {
    "embeddings": "trained",
    "embedding_width": 4,
    "pooling": "mean",
    "convolution_layers": 2,
    "filters": 3,
    "kernel_size": 3,
    "dense_layers": 1,
    "units": 5,
    "dropout": 0.5,
    "l2": 0.01,
    "optimizer": "adam",
    "learning_rate": 0.01,
}
# One value each, so that a run is short.
SPACE = {
    **{name: [value] for name, value in NETWORK.items()},
    "convolution_layers": [0],
    "embedding_width": [16],
    "dropout": [0.0],
    "l2": [0.0],
    "learning_rate": {"low": 1e-3, "high": 1e-1, "log": True},
}
SETTINGS = {
    "task": "demo_sentiment",
    "method": "no_bert",
    "encoder": commands.ENCODER,
    "data": {"max_train_examples": 64, "max_length": 24},
    "train": {"epochs": 1},
    "search": {"trials": 3, "space": SPACE},
}


def _network(**changes):
    return no_bert_model.make_network({**NETWORK, **changes}, TABLE, 1, 2)


@pytest.mark.parametrize("pooling", no_bert_model.POOLINGS)
@pytest.mark.parametrize("layers", [0, 2])
def test_padding_changes_nothing(pooling, layers):
    network = _network(pooling=pooling, convolution_layers=layers)
    for weight in network.weights:
        weight.assign(GENERATOR.normal(size=weight.shape))
    ids = GENERATOR.integers(2, 20, (3, 5))
    padded = np.pad(ids, [(0, 0), (0, 4)], constant_values=1)
    np.testing.assert_allclose(network(padded), network(ids), atol=1e-5)
    other = np.where(np.arange(5) == 2, 19, ids)
    assert np.abs(network(other) - network(ids)).max() > 1e-3


def test_embeddings_of_the_encoder():
    """Both start from them; one trains them, both train the rest."""
    for embeddings, trains in (
        ("encoder_frozen", False),
        ("encoder_tuned", True),
    ):
        network = _network(embeddings=embeddings)
        (table,) = [w for w in network.weights if w.shape == TABLE.shape]
        np.testing.assert_array_equal(table, TABLE)
        found = [w is table for w in network.trainable_weights]
        assert any(found) == trains and len(found) > 4
    widths = {w.shape for w in _network().weights}
    assert (20, 4) in widths and TABLE.shape not in widths


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Makes the folder of a search, stopped after two of three networks."""
    folder = tmp_path_factory.mktemp("no_bert") / "run"
    train = no_bert_training.train_network
    values = []

    def stop(*arguments):
        if len(values) == 2:
            raise Stopped("now")
        values.append(train(*arguments))
        return values[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(no_bert_training, "train_network", stop)
        assert commands.run(folder, SETTINGS) == 75
    assert not (folder / "result.json").exists()
    assert commands.run(folder, SETTINGS) == 0
    return folder, values


def test_a_stopped_search_goes_on(finished):
    folder, values = finished
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines]
    # The third one's process ended before it did: another took its place.
    assert [trial["step"] for trial in trials] == [0, 1, 3]
    assert [trial["metric"] for trial in trials[:2]] == values
    assert len({trial["learning_rate"] for trial in trials}) == 3
    result = json.loads((folder / "result.json").read_text())
    best = max(trial["metric"] for trial in trials)
    assert result["validation"]["accuracy"] == pytest.approx(best)
    assert "test" in result
    network = keras.saving.load_model(folder / "model.keras", compile=False)
    count = sum(np.prod(w.shape) for w in network.trainable_weights)
    assert result["trained_weights"] == count


def _check_the_first_is_kept(folder):
    result = json.loads((folder / "result.json").read_text())
    network = keras.saving.load_model(folder / "model.keras", compile=False)
    kernels = [w for w in network.weights if len(w.shape) == 2]
    assert kernels[-1].shape[0] == result["settings"]["units"]
    assert result["best_trial"] == 0


def test_of_equal_networks_the_first_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(no_bert_training, "train_network", lambda *_: 0.5)
    space = {**SPACE, "units": list(range(4, 100))}
    settings = resolve.merge(SETTINGS, {"search": {"space": space}})
    folder = tmp_path / "run"
    assert commands.run(folder, settings) == 0
    _check_the_first_is_kept(folder)
    assert not list(folder.glob("trial_*"))


def test_a_network_whose_process_ended_is_no_others(tmp_path, monkeypatch):
    # The second one's is saved, and does not count: its process ends.
    values = iter((0.3, 0.9, 0.1, 0.2))
    monkeypatch.setattr(
        no_bert_training, "train_network", lambda *_: next(values)
    )
    told, tell = [], optuna.Study.tell

    def end(study, trial, value=None, **options):
        told.append(value)
        if len(told) == 2:
            raise Stopped("now")
        return tell(study, trial, value, **options)

    monkeypatch.setattr(optuna.Study, "tell", end)
    space = {**SPACE, "units": list(range(4, 100))}
    settings = resolve.merge(SETTINGS, {"search": {"space": space}})
    folder = tmp_path / "run"
    assert commands.run(folder, settings) == 75
    assert commands.run(folder, settings) == 0
    _check_the_first_is_kept(folder)


def test_a_network_that_diverges_scores_less_than_any():
    class Data:
        metrics = ("pearson",)
        head = types.SimpleNamespace(loss="mse")

        def arrays(self, split):
            return np.full((8, 3), 2, "int32"), np.full(8, 1e30, "float32")

        def evaluate(self, network, split):
            outputs = network.predict(self.arrays(split)[0], verbose=0)[:, 0]
            return compute_metrics(self.metrics, np.arange(8.0), outputs)

    train = types.SimpleNamespace(
        epochs=3, batch_size=4, early_stopping_patience=None
    )
    settings = {**NETWORK, "optimizer": "sgd", "learning_rate": 1e6}
    network = no_bert_model.make_network(settings, TABLE, 1, 1)
    assert (
        no_bert_training.train_network(network, settings, Data(), train) == -1.0
    )


def test_regression_learns_by_the_heads_own_loss():
    ids = GENERATOR.integers(2, 20, (64, 5))
    targets = TABLE[ids, 0].mean(1) * 3

    class Data:
        metrics = ("pearson",)
        head = tf_adapters.heads.Regression()

        def arrays(self, split):
            return ids, targets

        def judge(self, network, split):
            outputs = network.predict(ids, verbose=0)
            return self.head.judge(self.metrics, list(outputs), targets)

    train = types.SimpleNamespace(
        epochs=30, batch_size=16, early_stopping_patience=None
    )
    settings = {**NETWORK, "embeddings": "encoder_tuned", "l2": 0.0}
    settings |= {"dropout": 0.0, "convolution_layers": 0}
    network = no_bert_model.make_network(settings, TABLE, 1, 1)
    assert (
        no_bert_training.train_network(network, settings, Data(), train) > 0.9
    )
    spread = network.predict(ids, verbose=0).std()
    assert spread > 0.5 * targets.std()


def test_class_weights_are_those_of_the_command(tmp_path, monkeypatch):
    seen = []

    def train(network, settings, data, train):
        seen.append(data.head.class_weights)
        return 0.5

    monkeypatch.setattr(no_bert_training, "train_network", train)
    layer = {"head": {"class_weights": [1.0, 3.0]}, "search": {"trials": 1}}
    settings = resolve.merge(SETTINGS, layer)
    assert commands.run(tmp_path / "run", settings) == 0
    assert seen == [(1.0, 3.0)]


def test_a_signal_ends_it_and_what_is_done_is_at_the_address(monkeypatch):
    def train(network, settings, data, train):
        if len(done) == 2 and folders[1:] == []:
            os.kill(os.getpid(), signal.SIGTERM)
        done.append(settings)
        return 0.1 * len(done)

    done = []
    monkeypatch.setattr(no_bert_training, "train_network", train)
    address = "ram://bucket/search"
    folders = [remote_folder.local(address)]
    assert commands.run(folders[0], SETTINGS) == 75
    assert len(done) == 2
    folders.append(remote_folder.local(address))
    assert commands.run(folders[1], SETTINGS) == 0
    lines = (folders[1] / "metrics.jsonl").read_text().splitlines()
    trials = [json.loads(line) for line in lines]
    assert [trial["metric"] for trial in trials] == pytest.approx(
        [0.1, 0.2, 0.3]
    )
    assert len(done) == 3


def test_the_same_command_prints_the_result(finished, capsys):
    folder, _ = finished
    assert commands.run(folder, SETTINGS) == 0
    out = capsys.readouterr().out
    assert "this run, which has finished" in out and "best of 3 networks" in out


def test_what_else_is_asked_of_it(finished, capsys):
    folder, _ = finished
    assert commands.run(folder, mode="eval") == 1
    assert "a baseline without an encoder" in capsys.readouterr().err
    encoder, _ = tf_adapters.load_encoder(commands.ENCODER)
    with pytest.raises(UserError, match="nothing to adapt"):
        tf_adapters.adapt(encoder, no_bert.NoBert())


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"search": {"space": {"depth": [1]}}}, "or unknown: depth"),
        ({"search": {"space": {"pooling": ["sum"]}}}, "mean, max"),
        ({"search": {"trials": 0}}, "at least 1"),
        ({"pretrain": {"steps": 3}}, "does not use: pretrain.steps"),
        ({"quantize": "int8"}, "does not use: quantize"),
        ({"train": {"learning_rate": 1e-2}}, "train.learning_rate"),
        (
            {"train": {"max_steps": 9, "keep": "last", "clip_norm": 2.0}},
            "does not use: train.clip_norm, train.keep, train.max_steps",
        ),
        ({"head": {"reads": "pooled_output"}}, "head.reads"),
        ({"search": {"space": {"units": 64}}}, "`search.space.units` must be"),
        ({"search": {"space": {"l2": {"low": 1}}}}, "`search.space.l2` must"),
        *(
            ({"search": {"space": {"l2": ends}}}, "`search.space.l2` must")
            for ends in (
                {"low": 0.5, "high": 0.1},
                {"low": 0.0, "high": 0.1, "log": True},
            )
        ),
    ],
)
def test_mistakes(layer, message, tmp_path, capsys):
    settings = resolve.merge(SETTINGS, layer)
    assert commands.run(tmp_path / "run", settings) == 1
    assert message in capsys.readouterr().err


def test_a_task_of_another_kind(tmp_path):
    config = resolve.resolve_config(SETTINGS)
    data = TaskData(tasks.get("ud_pos"), {})
    with pytest.raises(ConfigError, match="is of tagging"):
        no_bert_search.run_search(config, data, tmp_path)
