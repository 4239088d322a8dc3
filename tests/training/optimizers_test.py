"""Tests the schedule, and which weights decay."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods.cases import CASES
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.config.settings import TrainConfig
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.models.adapter_model import adapt
from tf_adapters.training import optimizers
from tf_adapters.training.fused_adamw import FusedAdamW

HEAD = heads.Regression()


def test_warm_up_and_decay_are_linear():
    schedule = optimizers.LinearWarmupAndDecay(2.0, 100, 10)
    rates = [float(schedule(step)) for step in (0, 5, 10, 55, 100)]
    np.testing.assert_allclose(rates, [0, 1, 2, 1, 0], atol=1e-6)
    copy = type(schedule).from_config(schedule.get_config())
    assert float(copy(7)) == float(schedule(7))


def test_a_rate_without_decay_stays():
    schedule = optimizers.LinearWarmupAndDecay(2.0, 100, 10, decays=False)
    rates = [float(schedule(step)) for step in (0, 5, 10, 55, 100)]
    np.testing.assert_allclose(rates, [0, 1, 2, 2, 2], atol=1e-6)
    train = TrainConfig(learning_rate=2.0, warmup_fraction=0.0, decay="none")
    variable = keras.Variable([1.0])
    optimizer = optimizers.make_optimizer(train, [(40, 1.0)], [variable])
    assert float(optimizer._learning_rate(39)) == 2


def test_the_last_phase_has_a_schedule_of_its_own():
    variable = keras.Variable([1.0])
    train = TrainConfig(learning_rate=2.0, warmup_fraction=0.1)
    phases = [(40, 1.0), (20, 5.0)]
    optimizer = optimizers.make_optimizer(train, phases, [variable])
    schedule = optimizer._learning_rate
    steps = (0, 4, 22, 39, 40, 41, 42, 51, 59, 60)
    rates = [float(schedule(step)) for step in steps]
    expected = [0, 2, 1, 2 / 36, 0, 5, 10, 5, 10 / 18, 0]
    np.testing.assert_allclose(rates, expected, atol=1e-5)


@pytest.mark.parametrize("used", [[True, False], [False, False]])
def test_a_step_counts_and_changes_only_what_it_uses(used):
    variables = [keras.Variable([1.0], name="kernel") for _ in used]
    train = TrainConfig(warmup_fraction=0.0, weight_decay=0.1)
    for kind in (optimizers.AdamWOfSums, FusedAdamW):
        optimizer = optimizers.make_optimizer(
            train, [(40, 1.0)], variables, kind=kind
        )
        before = [float(v[0]) for v in variables]
        optimizer.apply_used([tf.ones(1)] * 2, variables, used)
        changed = [
            float(v[0]) != b for v, b in zip(variables, before, strict=True)
        ]
        assert changed == used
        assert int(optimizer.iterations) == 1


@pytest.mark.parametrize("name", ["houlsby", "full", "adapter_bias_l0"])
def test_norms_biases_vectors_and_gates_do_not_decay(name):
    model = adapt(tiny.encoder(), CASES[name][0], HEAD)
    for path, variable in model.trained_variables().items():
        kind = path.rsplit("/", 1)[-1]
        decays = kind in ("kernel", "down_kernel", "up_kernel", "embeddings")
        assert optimizers.has_decay(variable) == decays, path


def test_one_step_is_adamw():
    model = adapt(tiny.encoder(), CASES["houlsby"][0], HEAD)
    variables = list(model.trained_variables().values())
    before = tiny.values(variables)
    train = TrainConfig(learning_rate=0.1, weight_decay=0.5, warmup_fraction=0)
    optimizer = optimizers.make_optimizer(train, [(10, 1.0)], variables)
    generator = np.random.default_rng(0)
    gradients = [
        generator.normal(size=v.shape).astype("float32") for v in variables
    ]
    optimizer.apply(gradients, variables)
    for variable, old, gradient in zip(
        variables, before, gradients, strict=True
    ):
        decay = 0.5 if optimizers.has_decay(variable) else 0.0
        # The first step of Adam is the sign of the gradient.
        expected = old - 0.1 * (np.sign(gradient) + decay * old)
        np.testing.assert_allclose(variable.numpy(), expected, atol=1e-4)


def test_the_value_of_a_fusion_does_not_decay():
    """Its penalty pulls it to the identity (AdapterFusion, section 3.2)."""
    method = methods.Fusion(adapters=("a", "b"), units=4)
    model = AdapterModel(tiny.encoder(), method, HEAD)
    decays = {
        path.rsplit("/", 1)[-1]: optimizers.has_decay(variable)
        for path, variable in model.trained_variables().items()
        if "fusion" in path
    }
    assert decays == {
        "query_kernel": True,
        "query_bias": False,
        "key_kernel": True,
        "value_kernel": False,
    }
    attention = adapt(tiny.encoder(), CASES["projected_attention"][0], HEAD)
    assert all(
        optimizers.has_decay(variable)
        for path, variable in attention.trained_variables().items()
        if path.endswith("value_kernel")
    )


def test_training_nothing_is_refused():
    with pytest.raises(ConfigError, match="nothing to train"):
        optimizers.make_optimizer(TrainConfig(), [(10, 1.0)], [])


def test_the_fused_update_is_that_of_keras():
    values = []
    for kind in optimizers.AdamWOfSums, FusedAdamW:
        variables = [
            keras.Variable(np.full((2, 3), 0.5)),
            keras.Variable([1.0]),
        ]
        train = TrainConfig(learning_rate=0.1, weight_decay=0.2, decay="none")
        optimizer = optimizers.make_optimizer(
            train, [(5, 1.0)], variables, kind=kind
        )
        step = tf.function(optimizer.apply)
        generator = np.random.default_rng(0)
        for _ in range(5):
            gradients = [generator.normal(size=v.shape) for v in variables]
            step([tf.constant(one, "float32") for one in gradients])
        values.append([v.numpy() for v in variables])
    for fused, expected in zip(*values, strict=True):
        np.testing.assert_allclose(fused, expected, rtol=1e-5)


def test_two_schedules_in_a_row_have_a_config():
    schedules = keras.optimizers.schedules
    one = optimizers.SequentialSchedule(
        schedules.PolynomialDecay(0.0, 10, 1.0), 10, schedules.CosineDecay(1, 9)
    )
    other = keras.saving.deserialize_keras_object(
        keras.saving.serialize_keras_object(one)
    )
    for step in (0, 4, 9, 10, 15, 19):
        assert float(other(step)) == pytest.approx(float(one(step)))
    assert float(other(5)) == pytest.approx(0.5)
