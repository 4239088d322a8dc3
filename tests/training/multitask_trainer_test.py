"""Tests which weights a step of several tasks on one encoder changes.

Steps run eagerly, because building graphs takes longest.
"""

import dataclasses

import keras
import numpy as np
import pytest

from tests import tiny
from tests.data.batches.ragged_examples import make_examples
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.data.batches.task_mixture import Mixture
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.multitask_model import MultiTaskModel
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.models.variable_groups import trained_table
from tf_adapters.training import distribution
from tf_adapters.training import graphs
from tf_adapters.training.loop import Loop
from tf_adapters.training.multitask_trainer import MultiTaskTrainer
from tf_adapters.training.multitask_trainer import of_task
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.integration

# A classification and a regression.
HEADS = {
    "words": heads.Classification(("no", "yes"), dropout_rate=0.0),
    "sizes": heads.Regression(dropout_rate=0.0),
}
METRICS = {"words": ("accuracy",), "sizes": ("pearson", "spearman")}
METHOD = methods.MultiTask(tuple(HEADS), methods.Pfeiffer(units=4))


@pytest.fixture
def without_graphs(monkeypatch):
    monkeypatch.setattr(graphs, "traced", lambda function: function)
    monkeypatch.setattr(graphs, "one_trace", lambda function, batches: function)


def _lengths(rows):
    return np.array([len(row) / 3 for row in rows], "float32")


def _mixture(count=24, seed=0):
    return Mixture(
        {
            "words": make_examples(count, seed),
            "sizes": make_examples(count // 2, seed + 50, _lengths),
        }
    )


def _config(**train):
    config = resolve.resolve_config(
        {
            "method": {"name": "multitask", "tasks": list(HEADS)},
            "train": {
                "batch_size": 8,
                "learning_rate": 1e-2,
                "warmup_fraction": 0.0,
                "weight_decay": 0.1,
                **train,
            },
        }
    )
    return dataclasses.replace(config, method=METHOD)


def _model(method=METHOD, strategy="one_device", dtype="float32"):
    keras.utils.set_random_seed(0)
    with distribution.make_strategy(strategy).scope():
        encoder = tiny.encoder(dtype=dtype)
        return MultiTaskModel(
            {name: adapt(encoder, method, head) for name, head in HEADS.items()}
        )


def _trainer(config, method=METHOD, strategy="one_device"):
    model = _model(method, strategy, config.train.precision)
    strategy = distribution.make_strategy(strategy)
    trainers = {
        name: Trainer(
            one, strategy, config.train, config.data, config.seed, METRICS[name]
        )
        for name, one in model.models.items()
    }
    return MultiTaskTrainer(model, trainers, config.method.sampling)


def _values(trainer):
    named = trainer.model.trained_variables()
    return {name: v.numpy().copy() for name, v in named.items()}


def _step(trainer, mixture, task):
    """Trains one batch of a task."""
    plan = trainer.plan(mixture, 0)
    batch = next(b for b in plan if mixture.locate(b)[0] == task)
    ((losses, norms),) = trainer.train_loops(mixture, [[batch]])
    return float(losses[0]), np.asarray(norms[0])


def _changed(before, after):
    return {
        name
        for name, value in before.items()
        if not np.array_equal(value, after[name])
    }


def test_a_step_leaves_the_other_tasks_alone_and_moves_the_encoder(
    without_graphs,
):
    """Momentum and decay would otherwise change weights of other tasks."""
    mixture, trainer = _mixture(), _trainer(_config())
    trainer.prepare_training(20)
    start = _values(trainer)
    _step(trainer, mixture, "words")
    middle = _values(trainer)
    _, norms = _step(trainer, mixture, "sizes")
    end = _values(trainer)
    first, second = _changed(start, middle), _changed(middle, end)
    assert {name.split("/")[0] for name in first} >= {"words"}
    assert not any(name.startswith("sizes/") for name in first)
    assert not any(name.startswith("words/") for name in second)
    for task, changed in (("words", first), ("sizes", second)):
        own = {name for name in start if name.startswith(f"{task}/")}
        shared = {n for n in start if n.split("/")[0] not in HEADS}
        # The sum of softmax over keys does not depend on the keys' bias.
        shared = {name for name in shared if "key/bias" not in name}
        assert len(own) == 4 * tiny.BLOCKS + 2 and len(shared) > 30
        assert own | shared <= changed
    used = {name for name, n in zip(start, norms, strict=True) if n > 0}
    assert not any(name.startswith("words/") for name in used)
    assert any(name.startswith("sizes/") for name in used)
    optimizer_steps = int(trainer.optimizer.iterations.numpy())
    assert optimizer_steps == 2


def test_tasks_share_one_loss_scale(without_graphs):
    mixture = _mixture()
    trainer = _trainer(_config(precision="mixed_float16"))
    trainer.prepare_training(20)
    scale = trainer.optimizer.loss_scale
    scale.scale.assign(2.0**60)
    start = _values(trainer)
    for task in ("words", "sizes"):
        _, norms = _step(trainer, mixture, task)
        assert not np.isfinite(norms).all()
    assert scale.read() == 2.0**58
    assert not _changed(start, _values(trainer))
    scale.scale.assign(1024.0)
    _step(trainer, mixture, "words")
    assert scale.finite_steps.numpy() == 1
    assert any("words/" in name for name in _changed(start, _values(trainer)))


def test_a_first_step_is_that_of_the_task_alone(without_graphs):
    mixture, trainer = _mixture(), _trainer(_config())
    trainer.prepare_training(20)
    loss, _ = _step(trainer, mixture, "sizes")
    other = _trainer(_config()).trainers["sizes"]
    other.prepare_training(20)
    batch = next(
        own
        for task, own in map(mixture.locate, trainer.plan(mixture, 0))
        if task == "sizes"
    )
    ((alone, _),) = other.train_loops(mixture.tasks["sizes"], [[batch]])
    assert loss == float(alone[0]) > 0.1
    joint = trainer.trainers["sizes"].variables
    for variable, expected in zip(joint, other.variables, strict=True):
        np.testing.assert_array_equal(variable.numpy(), expected.numpy())


def test_a_frozen_encoder_stays_as_it_was(without_graphs):
    method = dataclasses.replace(METHOD, train_encoder=False)
    mixture, trainer = _mixture(), _trainer(_config(epochs=1), method)
    encoder = trainer.model.encoder.backbone.weights
    before, start = tiny.values(encoder), _values(trainer)
    Loop(
        trainer, mixture, mixture, lambda record: None, lambda values: None
    ).run()
    for old, new in zip(before, tiny.values(encoder), strict=True):
        np.testing.assert_array_equal(new, old)
    assert _changed(start, _values(trainer)) == set(start)
    assert {name.split("/")[0] for name in start} == set(HEADS)


@pytest.mark.slow
def test_tasks_of_two_kinds_learn_together(without_graphs):
    config = _config(epochs=4, batch_size=16, weight_decay=0.0)
    mixture, trainer = _mixture(96), _trainer(config)
    records, saved = [], []
    start = trainer.evaluate(mixture)
    outcome = Loop(
        trainer, mixture, mixture, records.append, saved.append
    ).run()
    best = outcome["validation"]
    first = (best["words/accuracy"], best["sizes/pearson"])
    assert best["mean"] == pytest.approx(np.mean(first))
    assert set(best) == {
        *("mean", "words/accuracy", "sizes/pearson", "sizes/spearman")
    }
    assert best["mean"] > start["mean"] + 0.1
    history = [r["validation"]["mean"] for r in records if "validation" in r]
    assert best["mean"] == max(history) == saved[-1]["mean"]
    assert len(history) == 4
    # The models end with the best weights.
    assert trainer.evaluate(mixture) == best
    assert of_task(best, "sizes").keys() == {"pearson", "spearman"}
    assert outcome["steps"] == 4 * (6 + 3)


@pytest.mark.slow
def test_gradient_norms_are_named_for_all_tasks(without_graphs):
    config = _config(epochs=1, log_gradient_norms=True)
    mixture, trainer = _mixture(), _trainer(config)
    records = []
    Loop(trainer, mixture, mixture, records.append, lambda values: None).run()
    (norms,) = [r["gradient_norms"] for r in records if "validation" in r]
    assert set(norms) == set(trainer.model.trained_variables())


@pytest.mark.slow
def test_two_replicas_equal_one_device(without_graphs):
    mixture, results = _mixture(), []
    for strategy in ("one_device", "mirrored"):
        trainer = _trainer(_config(), strategy=strategy)
        trainer.prepare_training(20)
        plan = trainer.plan(mixture, 0)
        assert {mixture.locate(batch)[0] for batch in plan} == set(HEADS)
        loops = trainer.train_loops(mixture, [[batch] for batch in plan])
        losses = [float(x[0]) for x, _ in loops]
        results.append((losses, _values(trainer)))
    (losses, values), (others, second) = results
    np.testing.assert_allclose(others, losses, atol=1e-4)
    for name, value in values.items():
        if "key/bias" not in name:
            np.testing.assert_allclose(second[name], value, atol=1e-3)


def test_the_table_counts_what_is_shared_once():
    model = _model()
    table = trained_table(model)
    trained = count_weights(model.trained_variables().values())
    own = sum(
        count_weights(model.own_variables(name).values()) for name in HEADS
    )
    full = adapt(tiny.encoder(), methods.Full(), HEADS["words"])
    shared = count_weights(full.trained_variables().values())
    assert trained == shared - 2 * (tiny.WIDTH + 1) + own
    assert f"{trained:,}" in table.splitlines()[-1]
    assert "words: adapters" in table and "sizes: head" in table


def test_an_adapter_that_trains_the_encoder_is_refused():
    method = dataclasses.replace(METHOD, adapter=methods.Houlsby(units=4))
    with pytest.raises(ValueError, match="leave the encoder alone.*Houlsby"):
        _model(method)
