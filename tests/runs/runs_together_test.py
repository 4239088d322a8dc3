"""Tests which settings exclude training several runs at once."""

import dataclasses
from pathlib import Path
import types

import numpy as np
import pytest

from tests import commands
from tf_adapters import heads
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.data import examples as examples_lib

pytest.importorskip("jax")
from jax import numpy as jnp

from tf_adapters.runs import runs_together
from tf_adapters.runs import task_data
from tf_adapters.runs import together_checks
from tf_adapters.training import device_errors
from tf_adapters.training import jax_runs_loop

ENCODERS = Path(commands.ENCODER_OF_TWO_BLOCKS).parent
SETTINGS = {
    "task": "sst2",
    "method": "houlsby",
    "backend": "jax",
    "data": {"batching": "fixed"},
}


def test_settings_that_can_be_trained():
    together_checks.check_settings(resolve.resolve_config(SETTINGS))


@pytest.mark.parametrize(
    ("name", "value", "needed"),
    [
        ("backend", "tensorflow", "jax"),
        ("distribution_strategy", "mirrored", "one_device"),
        ("data.batching", "grouped", "fixed"),
        ("data.length_buckets", [32, 64], "[]"),
        ("data.windows", 2, "1"),
        ("pretrain.steps", 9, "0"),
        ("train.accumulation_steps", 2, "1"),
        ("train.adapter_drop", [0, 1], "[]"),
        ("train.calibrate", True, "false"),
        ("train.early_stopping_patience", 3, "null"),
        ("train.snapshot_steps", 5, "null"),
        ("train.steps_per_loop", 2, "1"),
    ],
)
def test_a_setting_that_excludes_it_is_named(name, value, needed):
    section, _, key = name.rpartition(".")
    layer = {section: {key: value}} if section else {key: value}
    config = resolve.resolve_config(SETTINGS, layer)
    with pytest.raises(ConfigError) as error:
        together_checks.check_settings(config)
    assert f"these settings: `{name}` " in str(error.value)
    assert f"--params_override={name}={needed}," in str(error.value)


def test_all_settings_that_exclude_it_are_named_at_once():
    config = resolve.resolve_config({**SETTINGS, "backend": "tensorflow"})
    data = dataclasses.replace(config.data, batching="grouped")
    config = dataclasses.replace(config, data=data)
    with pytest.raises(ConfigError) as error:
        together_checks.check_settings(config)
    flag = "--params_override=backend=jax,data.batching=fixed,"
    assert flag in str(error.value)


@pytest.mark.parametrize(
    "layer",
    [
        {"method": {"name": "multitask", "tasks": ["sst2", "cola"]}},
        {"method": {"name": "no_bert"}, "task": "sst2"},
    ],
    ids=["multitask", "no_bert"],
)
def test_methods_with_a_training_of_their_own_are_refused(layer):
    settings = {key: SETTINGS[key] for key in ("backend", "data")}
    # The presets of these methods set it.
    train = {"train": {"early_stopping_patience": None}}
    config = resolve.resolve_config(settings, layer, train)
    name = layer["method"]["name"]
    with pytest.raises(ConfigError, match=f"method `{name}`"):
        together_checks.check_settings(config)


def test_each_encoder_has_its_own_tokens():
    """The groups of a study share a trainer, which tokenizes rows once."""
    head = heads.Classification(("negative", "positive"))
    model = types.SimpleNamespace(head=head)
    trainer, found = runs_together.TogetherTrainer(), []
    for folder in ("bert", "roberta"):
        config = resolve.resolve_config(
            SETTINGS,
            {
                "task": "demo_sentiment",
                "encoder": str(ENCODERS / folder),
                "data": {"max_length": 16, "max_train_examples": 4},
            },
        )
        data = task_data.load_task_data(config)
        encoder = trainer._encoder(config)
        examples = trainer._examples(encoder, model, config, data)["train"]
        again = trainer._examples(encoder, model, config, data)["train"]
        assert again is examples
        found.append([ids.tolist() for ids in examples.token_ids])
    assert found[0] != found[1]


def test_too_little_memory_is_an_error_of_its_own(monkeypatch):
    def allocate(*_):
        return jnp.zeros(10**15).block_until_ready()

    trainer = runs_together.TogetherTrainer()
    monkeypatch.setattr(trainer, "_train", allocate)
    config = resolve.resolve_config(SETTINGS)
    with pytest.raises(device_errors.DeviceMemoryError, match="--batch_size"):
        trainer.train([config], [Path("run")], [config])


def test_each_run_has_its_own_metric_to_select_weights():
    trainer, found = runs_together.TogetherTrainer(), []
    for metric in ("accuracy", "matthews"):
        layer = {"task": "demo_sentiment", "train": {"select_by": metric}}
        config = resolve.resolve_config(SETTINGS, layer)
        found.append(trainer._load(config).task.metrics[0])
    assert found == ["accuracy", "matthews"]


def _examples(number, **changes):
    ids = [np.array([1, 2], np.int32)] * number
    return examples_lib.Examples(ids, None, pad_id=0, **changes)


@pytest.mark.parametrize("split", ["train", "test"])
def test_runs_with_other_numbers_of_examples_are_refused(split):
    own = {"train": _examples(3), "test": _examples(3)}
    together_checks.check_sizes([own, own])
    with pytest.raises(ConfigError, match="the same number of examples"):
        together_checks.check_sizes([own, {**own, split: _examples(4)}])


def test_choices_and_masked_tokens_are_refused():
    together_checks.check_examples(_examples(2), "sst2")
    choices = [[np.array([1, 2], np.int32)] * 2]
    choices = dataclasses.replace(_examples(1), token_ids=choices)
    for examples in (choices, _examples(1, masking=object())):
        with pytest.raises(ConfigError, match="cannot train winogrande"):
            together_checks.check_examples(examples, "winogrande")


def test_a_run_without_finite_predictions_fails_alone(monkeypatch):
    """Its loss may have been finite until the last step."""
    loop = jax_runs_loop.RunsLoop.__new__(jax_runs_loop.RunsLoop)
    loop.model = types.SimpleNamespace(head=heads.Regression())
    loop.metric_names = ("spearman",)
    loop.settings = types.SimpleNamespace(evaluate_loss=False)
    loop.members = [types.SimpleNamespace(error="") for _ in range(2)]
    outputs = [[np.array([v]) for v in vs] for vs in ([1, np.nan], [1, 2])]
    monkeypatch.setattr(loop, "_predict", lambda _: outputs)
    examples = _examples(2, targets=np.array([1.0, 2.0]))
    failed, judged = loop.judge([examples] * 2)
    assert failed == ({}, {}) and "NaN" in loop.members[0].error
    assert judged[0]["spearman"] == pytest.approx(1.0)
    assert loop.members[1].error == ""
