"""Tests runs of several tasks: training and use."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import commands
from tests.fixtures import huggingface_folders
from tests.runs import whole_runs
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.encoders.load import load_encoder

ENCODER = str(huggingface_folders.ONE_BLOCK)
TASKS = ("demo_sentiment", "stsb")


def _run(settings, model_dir, **options):
    """Returns the exit status of a command."""
    return commands.run(model_dir, settings, **options)


def _method(*tasks, **settings):
    return {"name": "multitask", "tasks": list(tasks), **settings}


def _settings(data_dir, method, **settings):
    return {
        "encoder": ENCODER,
        "method": method,
        "data": {
            "data_dir": str(data_dir),
            "max_train_examples": 48,
            "max_length": 24,
        },
        "train": {"epochs": 1, "learning_rate": 1e-3},
        **settings,
    }


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    """A folder with a task of regression: how long two texts are."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "stsb").mkdir()
    generator = np.random.default_rng(0)
    for split in ("train", "dev"):
        lines = [
            json.dumps(
                {
                    "sentence1": "the film is good " * int(count),
                    "sentence2": "it was dull",
                    "label": float(count),
                }
            )
            for count in generator.integers(0, 5, 24)
        ]
        path = folder / "stsb" / f"{split}.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines))
    return folder


@pytest.fixture(scope="module")
def run_folder(data_dir, tmp_path_factory):
    """The folder of a finished run of two tasks."""
    folder = tmp_path_factory.mktemp("multitask") / "run"
    assert _run(_settings(data_dir, _method(*TASKS)), folder) == 0
    return folder


def _result(folder):
    return json.loads((folder / "result.json").read_text())


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ({"adapter": {"name": "fusion"}}, {}, "needs several adapters"),
        *(
            ({}, settings, "is for runs of one task")
            for settings in (
                {"data": {"eval_languages": ["de"]}},
                {"train": {"min_steps": 200}},
            )
        ),
    ],
)
def test_what_tasks_cannot_have_together(
    data_dir, tmp_path, method, settings, message, capsys
):
    changes = settings
    settings = _settings(data_dir, _method(*TASKS, **method))
    for part, values in changes.items():
        settings[part].update(values)
    assert _run(settings, tmp_path / "run") == 1
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_a_run_leaves_a_run_folder_a_task_and_one_encoder(run_folder):
    whole = _result(run_folder)
    assert whole["task"] == "demo_sentiment+stsb"
    assert set(whole["tasks"]) == set(TASKS)
    metrics = whole["validation"]
    first = (metrics["demo_sentiment/accuracy"], metrics["stsb/spearman"])
    assert metrics["mean"] == pytest.approx(np.mean(first))
    assert len(list(run_folder.rglob("adapter.safetensors"))) == 3
    for name in TASKS:
        result = _result(run_folder / name)
        assert result["validation"] == whole["tasks"][name]["validation"]
        assert result["trained_weights"] < whole["trained_weights"] / 5
        config = resolve.load_config(run_folder / name / "config.yaml")
        assert config.task == name
        assert config.encoder == str(run_folder / "encoder")
        assert config.method == methods.Pfeiffer(reduction_factor=16)
        records = (run_folder / name / "metrics.jsonl").read_text()
        last = json.loads(records.splitlines()[-1])
        assert last["validation"] == result["validation"]
    path = run_folder / "stsb/adapter/adapter_config.json"
    details = json.loads(path.read_text(encoding="utf-8"))["details"]
    assert details["text_fields"] == ["sentence1", "sentence2"]
    assert set(whole["tasks"]["demo_sentiment"]) == {"validation", "test"}
    table = (run_folder / "trained_weights.txt").read_text()
    assert "stsb: adapters" in table


@pytest.mark.slow
def test_the_encoder_did_train(run_folder):
    trained, _ = load_encoder(run_folder / "encoder")
    base, _ = load_encoder(ENCODER)
    moved = [
        not np.array_equal(new.numpy(), old.numpy())
        for new, old in zip(
            trained.backbone.weights, base.backbone.weights, strict=True
        )
    ]
    assert sum(moved) > len(moved) - 10  # Not the pooler.


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
def test_evaluation_of_a_task_repeats_its_numbers(run_folder, task, capsys):
    assert _run({}, run_folder / task, mode="eval") == 0
    printed = capsys.readouterr().out
    for split, metrics in _result(run_folder)["tasks"][task].items():
        (line,) = [x for x in printed.splitlines() if x.startswith(split)]
        for name, value in metrics.items():
            assert f"{name} {value:.4f}" in line


@pytest.mark.slow
def test_an_exported_task_answers_as_the_run(run_folder, tmp_path):
    texts = ["the film is good", "it was bad and dull", "very"]
    (tmp_path / "in.txt").write_text("".join(f"{text}\n" for text in texts))
    run = run_folder / "demo_sentiment"
    options = {"input": str(tmp_path / "in.txt"), "output": f"{tmp_path}/out"}
    assert _run({}, run, mode="predict", **options) == 0
    lines = (tmp_path / "out").read_text().splitlines()
    expected = [list(json.loads(x)["probabilities"].values()) for x in lines]
    assert _run({}, run, mode="export") == 0
    model = tf.saved_model.load(str(run / "export" / "demo_sentiment" / "1"))
    answer = model.signatures["serving_default"](tf.constant(texts))
    np.testing.assert_allclose(answer["probabilities"], expected, atol=1e-5)


@pytest.mark.slow
def test_fusion_takes_the_encoder_of_its_adapters(
    run_folder, data_dir, tmp_path
):
    adapters = [str(run_folder / name) for name in TASKS]
    method = {"name": "fusion", "adapters": adapters}
    settings = _settings(data_dir, method, task="demo_sentiment")
    del settings["encoder"]
    assert _run(settings, tmp_path / "run") == 0
    config = resolve.load_config(tmp_path / "run" / "config.yaml")
    assert config.encoder == str(run_folder / "encoder")
    assert "accuracy" in _result(tmp_path / "run")["test"]


def _left(folder):
    """Returns everything that a run of several tasks wrote, except times."""
    tensors = {
        f"{path.relative_to(folder)} {name}": array
        for path in sorted(folder.rglob("adapter.safetensors"))
        for name, array in load_file(path).items()
    }
    logs = {
        name: [
            {**record, "time": None}
            for record in commands.read_rows(folder / name / "metrics.jsonl")
        ]
        for name in ("", *TASKS)
    }
    results = {
        (name, key): value
        for name in ("", *TASKS)
        for key, value in _result(folder / name).items()
        if key in ("validation", "test", "best_step", "steps", "examples")
    }
    return tensors, logs, results


@pytest.mark.slow
def test_a_run_that_was_stopped_ends_as_one_that_was_not(
    data_dir, tmp_path, monkeypatch
):
    train = {"epochs": 4, "learning_rate": 1e-2, "checkpoint_seconds": 1000.0}
    settings = _settings(data_dir, _method(*TASKS), train=train)
    assert _run(settings, tmp_path / "whole") == 0
    for step in (3, 8):
        with monkeypatch.context() as patch:
            whole_runs.stop_at(patch, step)
            assert _run(settings, tmp_path / "run") == 75
    assert _run(settings, tmp_path / "run") == 0
    tensors, *rest = _left(tmp_path / "run")
    wanted, *wanted_rest = _left(tmp_path / "whole")
    assert rest == wanted_rest
    assert tensors.keys() == wanted.keys() and len(wanted) > 30
    for name, array in wanted.items():
        np.testing.assert_array_equal(tensors[name], array, err_msg=name)


@pytest.mark.slow
def test_another_encoder_is_refused(run_folder, capsys):
    settings = {"encoder": ENCODER}
    assert _run(settings, run_folder / "stsb", mode="eval") == 1
    error = capsys.readouterr().err
    assert "was trained on encoder" in error and "Load that encoder" in error


@pytest.mark.slow
def test_a_trained_encoder_starts_a_run_but_is_not_overwritten(
    run_folder, data_dir, tmp_path, capsys
):
    settings = _settings(
        data_dir, "head_only", task="stsb", encoder=str(run_folder)
    )
    assert _run(settings, run_folder) == 1
    assert "holds the encoder that the run starts" in capsys.readouterr().err
    assert (run_folder / "encoder" / "adapter.safetensors").exists()
    assert _run(settings, tmp_path / "run") == 0
    config = resolve.load_config(tmp_path / "run" / "config.yaml")
    assert config.encoder == str(run_folder)


@pytest.mark.slow
def test_a_frozen_encoder_is_not_written_again(data_dir, tmp_path):
    adapter = {"name": "projected_attention", "units": 8, "num_heads": 2}
    method = _method(*TASKS, train_encoder=False, adapter=adapter)
    method["sampling"] = "square_root"
    assert _run(_settings(data_dir, method), tmp_path / "run") == 0
    assert not (tmp_path / "run" / "encoder").exists()
    for name in TASKS:
        config = resolve.load_config(tmp_path / "run" / name / "config.yaml")
        assert config.encoder == ENCODER
        assert config.method == methods.ProjectedAttention(units=8, num_heads=2)
    assert _run({}, tmp_path / "run" / "stsb", mode="eval") == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"method": _method("stsb")}, "two tasks or more"),
        ({"method": _method("stsb", "stsb")}, "each named once"),
        ({"method": "multitask"}, "--tasks=a,b. Received: []"),
        ({"method": "multitask", "task": "stsb"}, "two tasks or more"),
        ({"method": _method("stsb", "demo")}, "Unknown task `demo`"),
        (
            {"method": _method(*TASKS), "task": "stsb"},
            "Give --task or --tasks",
        ),
        (
            {"method": {"name": "houlsby", "tasks": list(TASKS)}},
            "Only method `multitask`",
        ),
        (
            {"method": _method(*TASKS, adapter="houlsby")},
            "must leave the encoder alone",
        ),
        ({"method": _method(*TASKS, adapter="hulsby")}, "Did you mean `hou"),
        ({"method": _method(*TASKS, sampling="all")}, "Known: anneal"),
        (
            {"method": _method(*TASKS, adapter={"name": "full", "units": 3})},
            "Unknown setting `method.adapter.units`",
        ),
    ],
)
def test_mistakes_end_in_one_sentence(
    settings, message, data_dir, tmp_path, capsys
):
    method = settings.pop("method")
    settings = _settings(data_dir, method, **settings)
    assert _run(settings, tmp_path / "run") == 1
    error = capsys.readouterr().err
    assert message in error and "Traceback" not in error


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eval", "predict", "export"])
def test_modes_want_the_folder_of_one_task(run_folder, mode, tmp_path, capsys):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"sentence": "a film"}\n')
    options = {"input": str(rows)} if mode == "predict" else {}
    assert _run({}, run_folder, mode=mode, **options) == 1
    assert f"--model_dir={run_folder}/demo_sent" in capsys.readouterr().err


def test_an_override_may_name_another_adapter():
    def adapter(*overrides):
        layers = [resolve.parse_override(text) for text in overrides]
        layers.insert(0, {"method": _method("a", "b")})
        return resolve.resolve_config(*layers).method.adapter

    assert adapter() == methods.Pfeiffer(reduction_factor=16)
    assert adapter("method.adapter.reduction_factor=8").reduction_factor == 8
    assert adapter("method.adapter.units=8") == methods.Pfeiffer(units=8)
    assert adapter("method.adapter=head_only") == methods.HeadOnly()
    changed = adapter(
        "method.adapter=projected_attention,method.adapter.units=24"
    )
    assert changed == methods.ProjectedAttention(units=24)
    text = "method.adapter={name: projected_attention, num_heads: 6}"
    assert adapter(text) == methods.ProjectedAttention(num_heads=6)


def test_a_configuration_survives_its_file(tmp_path):
    method = _method("a", "b", adapter="projected_attention")
    config = resolve.resolve_config({"method": method})
    resolve.save_config(config, tmp_path / "config.yaml")
    assert resolve.load_config(tmp_path / "config.yaml") == config


@pytest.mark.slow
def test_a_run_may_move(run_folder, tmp_path, capsys):
    moved = shutil.copytree(run_folder, tmp_path / "moved")
    config = resolve.load_config(moved / "stsb" / "config.yaml")
    assert config.encoder == str(moved / "encoder")
    folder = run_folder.with_name("gone")
    run_folder.rename(folder)
    try:
        assert _run({}, moved / "stsb", mode="eval") == 0
    finally:
        folder.rename(run_folder)
    value = _result(run_folder)["tasks"]["stsb"]["validation"]["spearman"]
    assert f"spearman {value:.4f}" in capsys.readouterr().out
