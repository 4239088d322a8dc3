"""Tests that all strategies train the same and report what they did."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tests.runs import toy_runs
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import NonFiniteError
from tf_adapters.data.batches import batch_plan
from tf_adapters.models import saving
from tf_adapters.training import workers
from tf_adapters.training.loop import Loop

pytestmark = pytest.mark.integration


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    [
        methods.Houlsby(units=4),
        methods.Full(),
        methods.AdapterBias(),
        methods.LoRA(rank=4),
        # One draw of members a step, on whatever replica.
        cases.FUSIONS["fusion_subset"],
    ],
    ids=["houlsby", "full", "adapter_bias", "lora", "fusion_subset"],
)
def test_two_replicas_equal_one_device(method):
    """21 is not divisible by 8, nor is the remainder divisible by 2."""
    results = []
    for strategy in ("one_device", "mirrored"):
        trainer = toy_runs.trainer(
            toy_runs.config(epochs=3), strategy, method=method
        )
        assert trainer.strategy.num_replicas_in_sync == len(results) + 1
        _, records, _ = toy_runs.fit(trainer)
        weights = tiny.values(trainer.variables)
        outputs = trainer.predict(toy_runs.examples(seed=2))
        results.append((toy_runs.losses(records), weights, outputs))
    (losses, weights, outputs), second = results
    assert losses[0] != losses[-1]
    np.testing.assert_allclose(second[0], losses, atol=2e-5)
    for actual, expected in zip(second[1], weights, strict=True):
        np.testing.assert_allclose(actual, expected, atol=5e-4)
    np.testing.assert_allclose(second[2], outputs, atol=1e-3)


@pytest.mark.slow
def test_penalty_is_counted_once_over_replicas():
    method = methods.AdapterBias(l0_lambda=1e-2, train_norms="none")
    first = []
    for strategy in ("one_device", "mirrored"):
        trainer = toy_runs.trainer(
            toy_runs.config(epochs=1), strategy, method=method
        )
        _, records, _ = toy_runs.fit(trainer)
        first.append(toy_runs.losses(records)[0])
    penalty = 1e-2 * 0.8318 * (tiny.FFN_WIDTH + 1)
    assert penalty > 0.2
    assert abs(first[0] - first[1]) < 0.1 * penalty


def test_regularizers_of_weights_count():
    first = []
    for term in (0.0, 2.0):
        trainer = toy_runs.trainer(toy_runs.config(epochs=1), "one_device")
        (kernel, _) = trainer.model.head_layer.weights
        kernel.regularizer = lambda value, term=term: term + 0 * value[0, 0]
        _, records, _ = toy_runs.fit(trainer)
        first.append(toy_runs.losses(records)[0])
    assert first[1] - first[0] == pytest.approx(2, abs=1e-4)


def test_each_gradient_is_summed_over_replicas_once(monkeypatch):
    """The optimizer would repeat the sum that clipping needs."""
    summed = []
    all_reduce = tf.distribute.ReplicaContext.all_reduce

    def counted(self, operation, values, options=None):
        summed.append(len(tf.nest.flatten(values)))
        return all_reduce(self, operation, values, options)

    trainer = toy_runs.trainer(
        toy_runs.config(epochs=1), "mirrored", method=methods.BitFit()
    )
    monkeypatch.setattr(tf.distribute.ReplicaContext, "all_reduce", counted)
    toy_runs.fit(trainer)
    gradients = [count for count in summed if count > 1]
    assert gradients == [len(trainer.variables)] * len(gradients)
    # Each of two replicas traces a step, once inside of its loop and once.
    assert len(gradients) in (2, 4)


def test_messages_of_one_shape_need_one_graph():
    """The workers exchange this at every check."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for sent in (3, 4):
        values = strategy.experimental_distribute_values_from_function(
            lambda context, sent=sent: tf.constant([sent, 1])
        )
        total = workers.sum_function(strategy)(values)
        (first, _) = strategy.experimental_local_results(total)
        np.testing.assert_array_equal(first, [2 * sent, 2])
    traced = workers.sum_function(strategy).experimental_get_tracing_count()
    assert traced == 1


@pytest.mark.parametrize(
    ("dropout", "method"),
    [
        (0.5, methods.Houlsby(units=4)),
        (0.0, methods.Full(mixout=0.5)),
        pytest.param(
            0.0,
            methods.DiffPruning(gate_learning_rate_multiplier=1.0),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["dropout", "mixout", "gates"],
)
def test_replicas_draw_different_masks(dropout, method):
    trainer = toy_runs.trainer(toy_runs.config(), "mirrored", dropout, method)
    tiny.randomize(trainer.variables)
    trainer.prepare_training(10)
    features = tiny.batch(trainer.model.encoder_info) | {
        "targets": np.array([0, 1, 0], "int32"),
        "weights": np.ones(3, "float32"),
    }

    @tf.function
    def losses():
        # Both replicas get the same texts.
        return trainer.strategy.run(
            lambda: trainer.step._replica_gradients(features)[0]
        )

    first, second = trainer.strategy.experimental_local_results(losses())
    assert abs(first.numpy() - second.numpy()) > 1e-3


def test_seeds_that_are_far_apart_draw_different_masks():
    """They used to collide at 32,768."""
    trainer = toy_runs.trainer(toy_runs.config())
    trainer.prepare_training(10)
    found = []
    for seed in (1, 32769):
        trainer.step.seed = seed
        found.append(tuple(trainer.step.dropout_seed(0).numpy()))
    assert found[0] == (65536, 0) != found[1]


def test_more_parts_than_have_masks_of_their_own_are_refused():
    trainer = toy_runs.trainer(toy_runs.config(accumulation_steps=16_385))
    with pytest.raises(ConfigError, match="at most 16,384 on 1 dev.*16385"):
        trainer.prepare_training(10)


@pytest.mark.slow
def test_gradients_are_clipped_after_the_sum():
    """Adam only depends on relative sizes, so this compares the norms."""
    norms = []
    for strategy in ("one_device", "mirrored"):
        trainer = toy_runs.trainer(toy_runs.config(clip_norm=1e-3), strategy)
        trainer.prepare_training(100)
        applied = []
        original = trainer.optimizer.apply

        def spy(gradients, variables, applied=applied, original=original):
            applied.append(tf.linalg.global_norm(gradients))
            return original(gradients, variables)

        trainer.optimizer.apply = spy

        def run(features, trainer=trainer, applied=applied):
            trainer.step._replica_step(features)
            return applied[-1]

        plan = batch_plan.plan_evaluation(toy_runs.examples().lengths, 8)[:1]
        data = trainer.inputs.dataset(toy_runs.examples(), plan)
        step = tf.function(
            lambda f, t=trainer, r=run: t.strategy.run(r, args=(f,))
        )
        (value,) = {
            round(float(part), 7)
            for part in trainer.strategy.experimental_local_results(
                step(next(iter(data)))
            )
        }
        norms.append(value)
    np.testing.assert_allclose(norms, 1e-3, rtol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_steps_in_a_loop_on_the_device_are_the_same_steps(strategy):
    """Uses dropout, clipping, and a shortened last loop."""
    results = []
    for steps in (1, 4):
        config = toy_runs.config(epochs=2, steps_per_loop=steps, clip_norm=0.1)
        trainer = toy_runs.trainer(config, strategy, dropout=0.3)
        _, records, _ = toy_runs.fit(trainer)
        results.append(
            (toy_runs.losses(records), tiny.values(trainer.variables))
        )
        traces = trainer.step.run.experimental_get_tracing_count()
        assert traces == 1
    (losses, weights), (others, second) = results
    assert losses[-1] == pytest.approx(others[-1], abs=1e-6)
    for actual, expected in zip(second, weights, strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-6)


@pytest.mark.slow
def test_computing_activations_again_changes_nothing():
    """Uses two replicas, parts, a loop on the device, and dropout."""
    results = []
    for remat in (False, True):
        config = toy_runs.config(
            epochs=1, steps_per_loop=4, accumulation_steps=2, remat=remat
        )
        trainer = toy_runs.trainer(config, "mirrored", dropout=0.3)
        toy_runs.fit(trainer)
        results.append(tiny.values(trainer.variables))
    for expected, actual in zip(*results, strict=True):
        np.testing.assert_allclose(actual, expected, atol=1e-5)


def test_it_learns_keeps_the_best_and_reports_it():
    trainer = toy_runs.trainer(toy_runs.config(epochs=12))
    examples = toy_runs.examples(200)
    outcome, records, saved = toy_runs.fit(trainer, examples, examples)
    validations = [r["validation"] for r in records if "validation" in r]
    best = max(v["accuracy"] for v in validations)
    assert best > 0.7
    assert outcome["validation"]["accuracy"] == best
    assert saved[-1]["accuracy"] == best
    assert trainer.evaluate(examples)["accuracy"] == best
    assert outcome["steps"] == 12 * 25 and outcome["examples"] == 12 * 200
    assert outcome["mean_metric"] == pytest.approx(
        np.mean([v["accuracy"] for v in validations])
    )


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["one_device", "mirrored"])
def test_pruned_differences_are_kept(strategy):
    """Earlier phases are ignored, even if their weights were better."""
    method = methods.DiffPruning(share=0.02, gate_learning_rate_multiplier=4.0)
    config = toy_runs.config(epochs=4, validate_every_steps=1)
    trainer = toy_runs.trainer(config, strategy, method=method)
    differ = []

    def save(values):
        report = method.report(trainer.model)
        differ.append(report["weights_that_differ"])

    Loop(
        trainer,
        toy_runs.examples(),
        toy_runs.examples(seed=1),
        lambda record: None,
        save,
    ).run()
    report = method.report(trainer.model)
    assert report["weights_that_differ"] == int(0.02 * 3600)
    assert set(differ) == {int(0.02 * 3600)}


def test_validation_every_n_steps_and_gradient_norms():
    config = toy_runs.config(
        epochs=2, validate_every_steps=2, log_gradient_norms=True
    )
    trainer = toy_runs.trainer(config)
    _, records, _ = toy_runs.fit(trainer)
    validations = [r for r in records if "validation" in r]
    assert [r["step"] for r in validations] == [2, 3, 4, 6]
    norms = validations[0]["gradient_norms"]
    assert set(norms) == set(trainer.model.trained_variables())
    assert all(value > 0 for value in norms.values())


def test_early_stopping():
    config = toy_runs.config(
        epochs=50, early_stopping_patience=2, learning_rate=1e-7
    )
    outcome, records, _ = toy_runs.fit(toy_runs.trainer(config))
    assert len([r for r in records if "validation" in r]) <= 6
    assert outcome["steps"] < 50 * 3


def test_a_loss_that_is_not_finite_names_its_step():
    trainer = toy_runs.trainer(
        toy_runs.config(epochs=3), head=heads.Regression()
    )
    examples = toy_runs.examples()
    plan = batch_plan.plan_training(examples.lengths, 8, 0, 0, "grouped")
    third = plan[2].indices
    bad = examples.targets.astype("float32")
    bad[third] = np.nan
    with pytest.raises(NonFiniteError, match="loss of step 3 is nan"):
        toy_runs.fit(trainer, dataclasses.replace(examples, targets=bad))


@pytest.mark.slow
def test_after_a_bad_gradient_the_folder_holds_the_best_adapter(
    monkeypatch, tmp_path
):
    """The loss of target 9 is finite, but its square root has no gradient."""
    squared_error = heads.Regression.loss

    def steep(head, targets, outputs):
        root = tf.sqrt(tf.where(targets == 9, 0 * outputs[:, 0], 1.0))
        return squared_error(head, targets, outputs) + root

    monkeypatch.setattr(heads.Regression, "loss", steep)
    config = toy_runs.config(epochs=3, validate_every_steps=1)
    trainer = toy_runs.trainer(config, head=heads.Regression())
    trainer.metric_names = ("pearson",)
    examples = toy_runs.examples()
    plan = batch_plan.plan_training(examples.lengths, 8, 0, 0, "grouped")
    targets = examples.targets.astype("float32")
    targets[plan[2].indices[:1]] = 9
    train = dataclasses.replace(examples, targets=targets)
    folder, best = tmp_path / "adapter", []

    def save(values):
        saving.save_adapter(trainer.model, folder, values)
        best[:] = tiny.values(trainer.variables)

    message = "gradient of step 3 is not finite.*`.*` has norm nan.*more"
    with pytest.raises(NonFiniteError, match=message):
        Loop(trainer, train, examples, lambda record: None, save).run()
    loaded = saving.load_adapter(folder, tiny.encoder(num_blocks=1))
    saved = tiny.values(loaded.trained_variables().values())
    assert best and all(map(np.array_equal, saved, best))
    assert all(np.isfinite(value).all() for value in saved)


@pytest.mark.slow
def test_bfloat16_trains_float32_adapters():
    trainer = toy_runs.trainer(
        toy_runs.config(epochs=8, precision="mixed_bfloat16")
    )
    _, records, _ = toy_runs.fit(trainer, toy_runs.examples(200))
    losses = toy_runs.losses(records)
    assert np.mean(losses[-3:]) < np.mean(losses[:3]) - 0.1
    assert {v.dtype for v in trainer.variables} == {"float32"}


def test_predictions_come_in_the_order_of_the_rows():
    # Whatever is dropped in training.
    trainer = toy_runs.trainer(toy_runs.config(eval_batch_size=4), dropout=0.5)
    examples = toy_runs.examples()
    together = trainer.predict(examples)
    for i in (0, 7, 20):
        one = dataclasses.replace(
            examples,
            token_ids=examples.token_ids[i : i + 1],
            segment_ids=examples.segment_ids[i : i + 1],
            targets=examples.targets[i : i + 1],
        )
        np.testing.assert_allclose(
            trainer.predict(one)[0], together[i], atol=1e-5
        )


def test_nothing_is_tuned_that_ends_late():
    trainer = toy_runs.trainer(toy_runs.config(epochs=1))
    examples = toy_runs.examples(seed=0)
    plan = trainer.plan(examples, 0)
    batches = trainer.inputs.dataset(examples, plan)
    # No iterator of a strategy, whose autotuning stays on.
    assert isinstance(batches, tf.data.Dataset)
    assert batches.options().autotune.enabled is False
