"""A train step is one XLA program with static shapes, as TPUs run it.

XLA compiles for the CPU here: what it refuses, as an operation without a
compiled form or a shape that depends on values, it refuses for a TPU too.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tf_adapters import config as config_lib
from tf_adapters import heads
from tf_adapters.data import pipeline
from tf_adapters.data.encoded import Encoded
from tf_adapters.data.encoded import Masking
from tf_adapters.model import adapt
from tf_adapters.training import distribution
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.slow
LABELS = ("no", "yes", "maybe")
LENGTH, BATCH = 12, 4
CLASSIFICATION = heads.Classification(LABELS, dropout_rate=0.0)


def _config(**train):
    return config_lib.resolve(
        {
            "task": "toy",
            # Of the settings only those of training count.
            "method": "houlsby",
            "data": {"batching": "fixed", "max_length": LENGTH},
            "train": {
                "batch_size": BATCH,
                "learning_rate": 1e-2,
                "warmup_fraction": 0.0,
                **train,
            },
        }
    )


def _ids(count=6):
    generator = np.random.default_rng(0)
    lengths = generator.integers(4, LENGTH + 1, count)
    return [
        generator.integers(5, tiny.VOCABULARY, n).astype("int32")
        for n in lengths
    ]


def _examples(targets, ids=None, **options):
    ids = ids or _ids()
    encoded = Encoded(ids, _zeros(ids), targets, **options)
    return pipeline.to_examples(encoded, pad_id=0)


def _zeros(ids):
    return [_zeros(x) if isinstance(x, list) else 0 * x for x in ids]


def _tags():
    return [np.arange(len(row), dtype="int32") % 3 - 1 for row in _ids()]


# Kind of output: its head, and examples for it.
HEADS = {
    "classification": (
        CLASSIFICATION,
        lambda: _examples(np.arange(6, dtype="int32") % 3),
    ),
    "regression": (
        heads.Regression(dropout_rate=0.0),
        lambda: _examples(np.arange(6, dtype="float32")),
    ),
    "tagging": (
        heads.Tagging(LABELS, dropout_rate=0.0),
        lambda: _examples(_tags(), counts=np.array([3] * 6)),
    ),
    "span": (
        heads.Span(),
        lambda: _examples(np.array([[1, 2]] * 6, "int32")),
    ),
    "choice": (
        heads.Choice(dropout_rate=0.0),
        lambda: _examples(
            np.array([0, 1, 0], "int32"),
            [_ids()[0:2], _ids()[2:5], _ids()[4:6]],
        ),
    ),
    "masked_lm": (
        heads.MaskedLM(tiny.VOCABULARY, tiny.WIDTH),
        lambda: _examples(
            None,
            counts=np.array([2] * 6, "int32"),
            masking=Masking(4, (0, 1, 2, 3, 4), tiny.VOCABULARY),
        ),
    ),
}


def _trainer(method, head, config):
    strategy = distribution.make_strategy("one_device")
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = adapt(tiny.encoder(), method, head)
        # Small gradients would be mostly noise, which Adam makes large.
        tiny.randomize(model.trained_variables().values())
    trainer = Trainer(model, strategy, config, ())
    trainer.prepare_training(10)
    return trainer


def _plan(examples):
    return pipeline.plan_training(
        examples.lengths, BATCH, 0, 0, "fixed", (LENGTH,)
    )


def _step(trainer, examples, compiled):
    """Trains one batch; returns its loss."""
    batches = trainer._distribute(examples, _plan(examples))
    step = tf.function(
        trainer._train_on_replicas, autograph=False, jit_compile=compiled
    )
    loss, _ = step(next(iter(batches)))
    return float(loss)


def _draws(name):
    """Returns whether a method's step draws gates or what Mixout mixes."""
    return any(part in name for part in ("mixout", "diff_pruning", "_l0"))


def _check(method, head, examples, draws=False, **train):
    """Compares a compiled step with a plain one.

    XLA draws other numbers than TensorFlow from the same seed; where a method
    draws some, it is only seen that a step trains and stays finite.
    """
    compiled, plain = (
        _trainer(method, head, _config(**train)) for _ in range(2)
    )
    loss = _step(compiled, examples, True)
    expected = _step(plain, examples, False)
    assert abs(expected) > 1e-2
    if draws:
        assert 0.2 < loss / expected < 5
        _check_trained(compiled)
        return
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    for variable, other in zip(
        compiled.variables, plain.variables, strict=True
    ):
        # Keys' bias has no gradient but noise.
        if "key/bias" not in variable.path.replace(".", "/"):
            np.testing.assert_allclose(
                variable.numpy(), other.numpy(), atol=2e-3
            )


def _check_trained(trainer):
    other = _trainer(trainer.model.method, CLASSIFICATION, trainer.config)
    after, before = map(tiny.values, (trainer.variables, other.variables))
    assert all(np.isfinite(value).all() for value in after)
    # What a draw closes, or mixes away, stays as it was.
    assert not all(map(np.array_equal, after, before))


@pytest.mark.parametrize("name", cases.CASES)
def test_every_method(name):
    method, examples = cases.CASES[name][0], HEADS["classification"][1]()
    _check(method, CLASSIFICATION, examples, _draws(name))


@pytest.mark.parametrize("name", HEADS)
def test_every_head(name):
    head, make = HEADS[name]
    _check(cases.CASES["houlsby"][0], head, make())


def test_a_batch_in_parts():
    head, make = HEADS["classification"]
    _check(cases.CASES["houlsby"][0], head, make(), accumulation_steps=3)


def test_a_loop_on_the_device(monkeypatch):
    """Two steps in one compiled loop equal two calls."""
    head, make = HEADS["classification"]
    examples, method = make(), cases.CASES["houlsby"][0]
    plan = _plan(examples)
    assert len(plan) == 2
    results = []
    for steps in (1, 2):
        trainer = _trainer(method, head, _config(steps_per_loop=steps))
        monkeypatch.setattr(trainer, "_train_on_replicas", _compiled(trainer))
        loops = [plan[i : i + steps] for i in range(0, 2, steps)]
        losses = [x for x, _ in trainer.train_loops(examples, loops)]
        results.append(np.concatenate(losses))
    np.testing.assert_allclose(*results, rtol=1e-5)


def _compiled(trainer):
    return tf.function(
        trainer._train_on_replicas, autograph=False, jit_compile=True
    )
