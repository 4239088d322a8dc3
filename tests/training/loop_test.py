"""Tests what a run counts and when it stops, with a fake trainer.

The fake trainer has one weight, which each step increases by 1. A fake clock
measures time.
"""

import itertools
import types

import keras
import numpy as np
import pytest

from tests.methods.cases import CASES
from tf_adapters import methods
from tf_adapters.common.errors import NonFiniteError
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.training import loop
from tf_adapters.training import optimizers
from tf_adapters.training import schedule
from tf_adapters.training import trainer

BUILDING, STEP, VALIDATION = 100.0, 2.0, 1000.0
LENGTHS = np.array([3, 9, 4, 4, 8, 3, 5, 7, 7, 2, 6])


class _Weight:
    """A fake Keras variable."""

    def __init__(self):
        self.value = 0.0

    def assign(self, value):
        self.value = value

    def numpy(self):
        return np.array(self.value)


class _Trainer:
    """A fake `Trainer`.

    Args:
        config: `Config`.
        metrics: Metric of each validation. The last one is repeated.
        losses: Dict from step to loss. The loss of other steps is 0.5.
        norms: Dict from step to the norms of two gradients, 1 by default.
    """

    metric_names = ("accuracy",)
    names = ("adapter/a", "head/b")
    programs = ()
    optimizer = types.SimpleNamespace(
        rate_of_last_step=lambda: 0.1, loss_scale=None
    )

    def __init__(self, config, metrics=(1.0,), losses=None, norms=None):
        self.settings, self.seed = config.train, config.seed
        self.metrics = list(metrics)
        self.losses = losses or {}
        self.norms = norms or {}
        self.variables = [_Weight()]
        self.last_phase = 0
        self.phases = []
        self.model = types.SimpleNamespace(
            last_phase_step=lambda total_steps: self.last_phase,
            start_last_phase=lambda: self.phases.append(self.step),
        )
        self.now = 0.0
        self.step = 0
        self.loops = []

    def plan(self, train, epoch):
        settings = self.settings
        return batch_plan.plan_training(
            train.lengths, settings.batch_size, 0, epoch, "random"
        )

    def prepare_training(self, total_steps):
        self.now += 0.5

    def kind(self, examples, batch):
        return batch.length > 7

    def train_loops(self, examples, loops):
        for batches in loops:
            self.loops.append(len(batches))
            results = [self._train(batch) for batch in batches]
            losses, norms = zip(*results, strict=True)
            yield np.array(losses), np.array(norms)

    def _train(self, batch):
        self.step += 1
        self.now += STEP if self.step > 1 else BUILDING
        self.variables[0].value += 1
        loss = self.losses.get(self.step, 0.5)
        return loss, self.norms.get(self.step, [1.0, 1.0])

    def judge(self, examples):
        self.now += VALIDATION
        metric = self.metrics.pop(0) if self.metrics[1:] else self.metrics[0]
        values = metric if isinstance(metric, dict) else {"accuracy": metric}
        return values, {"step": self.step}


class _RatedTrainer(_Trainer):
    """A fake trainer with an optimizer that records its learning rates."""

    def prepare_training(self, total_steps):
        self.rates, self.weight = [], keras.Variable([0.0])
        self.optimizer = optimizers.make_optimizer(
            self.settings, [(total_steps, 1.0)], [self.weight]
        )

    def _train(self, batch):
        self.rates.append(float(self.optimizer.learning_rate))
        self.optimizer.apply([np.array([1.0])], [self.weight])
        return super()._train(batch)


def _config(**train):
    return resolve.resolve_config(
        {
            "task": "toy",
            "method": "houlsby",
            "data": {"batching": "random"},
            "train": {"batch_size": 4, "epochs": 1, **train},
        }
    )


@pytest.fixture
def run(monkeypatch):
    """Runs a loop; returns its summary, its records and the saved metrics."""

    def run(fake):
        monkeypatch.setattr(
            loop, "time", types.SimpleNamespace(perf_counter=lambda: fake.now)
        )
        run.records, run.saved, run.snapshots = [], [], []
        train = types.SimpleNamespace(lengths=LENGTHS, sequence_lengths=LENGTHS)
        run.loop = loop.Loop(
            fake,
            train,
            None,
            run.records.append,
            lambda _: run.saved.append(fake.variables[0].value),
            save_snapshot=lambda step: run.snapshots.append(
                (step, fake.variables[0].value)
            ),
        )
        return run.loop.run()

    return run


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"max_steps": 1}, [1.0]),
        ({"warmup_fraction": 0.0}, [1.0, 1 / 3]),
        ({"warmup_fraction": 0.7}, [0.0, 1.0]),
        ({"warmup_fraction": 0.0, "decay": "none"}, [1.0, 1.0]),
    ],
)
def test_the_rate_that_a_step_used_is_logged(run, settings, expected):
    trainer = _RatedTrainer(_config(learning_rate=1.0, **settings))
    run(trainer)
    records = [r for r in run.records if "learning_rate" in r]
    assert [r["learning_rate"] for r in records] == [
        pytest.approx(trainer.rates[r["step"] - 1]) for r in records
    ]
    assert [r["learning_rate"] for r in records] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"epochs": 2}, 2),
        ({"epochs": 1, "min_steps": 7}, 3),
        ({"epochs": 1, "min_steps": 9}, 3),
        ({"epochs": 4, "min_steps": 7}, 4),
    ],
)
def test_epochs_are_added_until_there_are_enough_steps(settings, expected):
    plans = schedule._plans(
        lambda epoch: [epoch] * 3, _config(**settings).train
    )
    assert list(plans) == [[epoch] * 3 for epoch in range(expected)]


def _plan(epoch, size=4):
    return batch_plan.plan_training(LENGTHS, size, 0, epoch, "random")


@pytest.mark.parametrize(
    ("last_phase", "best_step"), [(0, 1), (2, 2), (3, 3), (6, 6)]
)
def test_only_weights_of_the_last_phase_count(run, last_phase, best_step):
    """Metrics fall at every step, so patience alone would stop the run."""
    config = _config(
        epochs=2, validate_every_steps=1, early_stopping_patience=1
    )
    fake = _Trainer(config, metrics=[0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    fake.last_phase = last_phase
    summary = run(fake)
    assert fake.phases == ([last_phase] if last_phase else [])
    assert summary["best_step"] == best_step
    assert run.saved == [best_step]
    assert run.loop.predictions == {"step": best_step}
    assert fake.variables[0].value == best_step
    assert summary["steps"] == min(best_step + 1, 6)


def test_speed_leaves_out_the_step_that_builds_the_graph(run):
    summary = run(_Trainer(_config(epochs=2)))
    # Batches of 4, 4 and 3 examples, twice.
    assert summary["steps"] == 6 and summary["examples"] == 22
    assert summary["seconds"] == BUILDING + 5 * STEP
    assert summary["examples_per_second"] == (22 - 4) / (5 * STEP)


def test_speed_leaves_out_validation_right_after_the_first_step(run):
    summary = run(_Trainer(_config(validate_every_steps=1)))
    assert summary["seconds"] == BUILDING + 2 * STEP
    assert summary["examples_per_second"] == round(7 / (2 * STEP), 2)


def test_speed_of_a_single_step_is_its_own(run):
    summary = run(_Trainer(_config(batch_size=64)))
    assert summary["steps"] == 1
    assert summary["examples_per_second"] == 11 / BUILDING


def test_padding_is_that_of_the_batches_that_were_run(run):
    config = _config(
        epochs=50, validate_every_steps=2, early_stopping_patience=1
    )
    summary = run(_Trainer(config, metrics=[0.5, 0.6, 0.6]))
    # Validations after steps 2, 3 and 4.
    assert summary["steps"] == 4 and summary["examples"] == 15
    done = [*_plan(0), _plan(1)[0]]
    positions = sum(len(b.indices) * LENGTHS[b.indices].max() for b in done)
    tokens = sum(LENGTHS[b.indices].sum() for b in done)
    share = 1 - tokens / positions
    whole = batch_plan.padding_fraction([*_plan(0), *_plan(1)], LENGTHS)
    assert abs(share - whole) > 0.01
    assert summary["padding_share"] == round(share, 4)


def test_early_stopping_keeps_the_best_weights(run):
    fake = _Trainer(
        _config(epochs=9, early_stopping_patience=2),
        metrics=[0.5, 0.7, 0.7, 0.6, 0.9],
    )
    summary = run(fake)
    assert summary["best_step"] == 6 and summary["steps"] == 12
    assert summary["mean_metric"] == pytest.approx((0.5 + 0.7 + 0.7 + 0.6) / 4)
    assert run.saved == [3, 6] and fake.variables[0].value == 6


@pytest.mark.parametrize(
    ("losses", "kept", "steps"),
    [
        ((0.5, 0.4, 0.3, 0.2, 0.3), 15, 18),
        ((0.5, 0.3, 0.3, 0.4, 0.2), 6, 12),
    ],
)
def test_the_loss_decides_between_equal_metrics(run, losses, kept, steps):
    """A lower metric with a lower loss does not count."""
    metrics = [{"accuracy": 0.9, "loss": loss} for loss in losses]
    metrics.insert(3, {"accuracy": 0.8, "loss": 0.1})
    config = _config(epochs=6, early_stopping_patience=2)
    summary = run(_Trainer(config, metrics))
    assert (summary["best_step"], summary["steps"]) == (kept, steps)


def test_a_run_stops_early_only_after_its_least_steps(run):
    config = _config(min_steps=7, early_stopping_patience=1)
    summary = run(_Trainer(config, metrics=[0.9, 0.5]))
    assert (summary["best_step"], summary["steps"]) == (3, 7)


def test_the_last_weights_are_kept_where_they_are_asked_for(run):
    config = _config(epochs=3, early_stopping_patience=1, keep="last")
    fake = _Trainer(config, metrics=[0.9, 0.5, 0.7])
    summary = run(fake)
    assert summary["best_step"] == summary["steps"] == 9
    assert summary["validation"] == {"accuracy": 0.7}
    assert run.saved == [3, 6, 9] and fake.variables[0].value == 9


def test_snapshots_are_of_the_weights_of_their_step(run):
    """The number of steps per device call has no effect; nothing bad stays."""
    settings = {"epochs": 3, "steps_per_loop": 5, "snapshot_steps": 2}
    fake = _Trainer(_config(**settings))
    run(fake)
    assert run.snapshots == [(2, 2), (4, 4), (6, 6), (8, 8)]
    with pytest.raises(NonFiniteError):
        run(_Trainer(_config(**settings), norms={4: [1.0, np.nan]}))
    assert run.snapshots == [(2, 2)]
    run(_Trainer(_config()))
    assert not run.snapshots


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("step", [1, 4, 5, 6])
def test_a_gradient_that_is_not_finite_names_step_and_variable(run, bad, step):
    """Step 6 precedes a validation; steps 4 and 5 are between checks."""
    fake = _Trainer(
        _config(epochs=3), metrics=[0.5, 0.9], norms={step: [1.0, bad]}
    )
    message = (
        f"gradient of step {step} .*loss is 0.5: `head/b` has norm {bad}[.] "
        "Steps before it were finite. Lower --learning_rate"
    )
    with pytest.raises(NonFiniteError, match=message):
        run(fake)
    # Only what the first epoch's three steps gave, if they were good.
    assert run.saved == ([3] if step > 3 else [])
    assert [r["validation"] for r in run.records if "validation" in r] == (
        [{"accuracy": 0.5}] if step > 3 else []
    )


def _scaled(scale, **options):
    fake = _Trainer(_config(epochs=3, log_gradient_norms=True), **options)
    fake.optimizer = types.SimpleNamespace(
        rate_of_last_step=lambda: 0.1,
        loss_scale=types.SimpleNamespace(read=lambda: scale),
    )
    return fake


def test_a_step_that_overflows_in_float16_is_skipped_and_counted(run):
    """Step 6 precedes a validation."""
    overflow = [np.inf, np.nan]
    summary = run(_scaled(2.0, norms={2: overflow, 6: overflow}))
    assert summary["skipped_steps"] == 2
    counted = [r["skipped_steps"] for r in run.records if "loss" in r]
    assert counted == [0, 1, 2, 2]
    logged = [r for r in run.records if "validation" in r]
    assert ["gradient_norms" in r for r in logged] == [True, False, True]


def test_a_gradient_that_overflows_unscaled_is_a_bad_one(run):
    with pytest.raises(NonFiniteError, match="gradient of step 4"):
        run(_scaled(0.5, norms={4: [np.inf, 1.0]}))


def test_a_loss_that_overflows_in_float16_is_a_bad_one(run):
    with pytest.raises(NonFiniteError, match="loss of step 2 is inf"):
        run(_scaled(2.0, losses={2: np.inf}))


def test_the_first_bad_step_is_named_whatever_came_after(run):
    fake = _Trainer(
        _config(epochs=3),
        norms={4: [np.nan, np.inf]},
        losses={5: np.nan, 6: np.nan},
    )
    message = "step 4 .*`adapter/a` has norm nan, `head/b` has norm inf"
    with pytest.raises(NonFiniteError, match=message):
        run(fake)


def test_a_loss_that_is_not_finite_names_its_step(run):
    fake = _Trainer(_config(), losses={2: -np.inf}, norms={2: [np.nan] * 2})
    with pytest.raises(NonFiniteError, match="loss of step 2 is -inf"):
        run(fake)
    assert run.saved == []


def test_losses_are_read_every_twenty_steps(run):
    run(_Trainer(_config(batch_size=1, epochs=3)))
    steps = [r["step"] for r in run.records if "loss" in r]
    assert steps == [1, 11, 20, 22, 33]


@pytest.mark.parametrize(
    ("train", "last_phase", "loops"),
    [
        ({"steps_per_loop": 1}, 0, [1] * 22),
        # An epoch has eleven batches.
        ({"steps_per_loop": 4}, 0, [4, 4, 3] * 2),
        ({"steps_per_loop": 100}, 0, [11, 11]),
        ({"steps_per_loop": 4, "max_steps": 14}, 0, [4, 4, 3, 3]),
        # The host has work after steps 5, 10, 11, 15, 20 and 22; after 7.
        (
            {"steps_per_loop": 4, "validate_every_steps": 5},
            7,
            [4, 1, 2, 3, 1, 4, 4, 1, 2],
        ),
    ],
)
def test_a_loop_ends_where_the_host_has_work(run, train, last_phase, loops):
    fake = _Trainer(_config(batch_size=1, epochs=2, **train))
    fake.last_phase, fake.kind = last_phase, lambda examples, batch: None
    run(fake)
    assert fake.loops == loops
    assert fake.phases == ([last_phase] if last_phase else [])


def test_batches_of_a_loop_are_of_one_kind(run):
    fake = _Trainer(_config(batch_size=1, steps_per_loop=100))
    run(fake)
    lengths = [batch.length > 7 for batch in _plan(0, 1)]
    kinds = [len(list(group)) for _, group in itertools.groupby(lengths)]
    assert fake.loops == kinds and len(kinds) > 2


@pytest.mark.parametrize("module", [loop, trainer])
def test_no_method_is_known_by_name(module):
    with open(module.__file__, encoding="utf-8") as file:
        text = file.read().lower()
    # Without those that are English words, too.
    names = {*CASES, *methods.METHODS} - {"full", "parallel"}
    assert not [name for name in names if name in text]
