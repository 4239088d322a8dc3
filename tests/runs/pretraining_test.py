"""Tests pretraining on a task's texts, and the training after it."""

import json
from pathlib import Path
import types

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import commands
from tests.runs import whole_runs
import tf_adapters
from tf_adapters import tasks
from tf_adapters.common import adapter_folder
from tf_adapters.config import data_settings
from tf_adapters.config import resolve
from tf_adapters.config import settings
from tf_adapters.models import saving
from tf_adapters.runs import experiment
from tf_adapters.runs import new_model

FOLDER = Path(__file__).parents[1] / "fixtures/one_block/masked_lm"


def _run(
    model_dir, *overrides, overwrite=False, mode="train_and_eval", **layer
):
    settings = {
        "task": "demo_sentiment",
        "method": {"name": "pfeiffer", "units": 8},
        "encoder": str(FOLDER),
        "data": {"max_train_examples": 60, "max_length": 16},
        "train": {"epochs": 1},
        "pretrain": {"steps": 12, "batch_size": 16, "learning_rate": 1e-2},
        **layer,
    }
    options = {"params_override": list(overrides), "overwrite": overwrite}
    options["mode"] = mode
    return commands.run(model_dir, settings, **options)


def _tensors(folder):
    return load_file(folder / "adapter" / "adapter.safetensors")


@pytest.mark.slow
def test_the_whole_chain(tmp_path, capsys):
    assert _run(tmp_path / "run") == 0
    out = capsys.readouterr().out
    assert "checkpoint's own head" in out
    result = json.loads((tmp_path / "run/pretrain/result.json").read_text())
    # Four batches an epoch: three epochs of them.
    assert result["steps"] == 12
    before, after = result["before"], result["validation"]
    assert after["log_likelihood"] > before["log_likelihood"]
    assert f"{-before['log_likelihood']:.4f} before" in out
    own = json.loads((tmp_path / "run/result.json").read_text())
    assert own["pretraining"] == {
        "masked_lm_loss_before": -before["log_likelihood"],
        "masked_lm_loss_after": -after["log_likelihood"],
        "pretraining_seconds": result["seconds"],
    }
    pretrained = _tensors(tmp_path / "run/pretrain")
    assert "head/output_bias" in pretrained
    assert not any("embeddings" in name for name in pretrained)
    # Found again, neither stage trained again.
    files = [tmp_path / "run/pretrain", tmp_path / "run"]
    files = [folder / "result.json" for folder in files]
    stamps = [file.stat().st_mtime_ns for file in files]
    assert _run(tmp_path / "run") == 0
    assert "this run, which has finished" in capsys.readouterr().out
    assert [file.stat().st_mtime_ns for file in files] == stamps
    assert _run(tmp_path / "run", mode="eval") == 0


@pytest.mark.slow
def test_only_adapters_train(tmp_path, capsys):
    """Norms and the head for masked tokens stay as the checkpoint has them."""
    settings = {
        "method": {"name": "houlsby", "units": 8},
        "pretrain": {
            "steps": 4,
            "batch_size": 16,
            "learning_rate": 1e-2,
            "adapters_only": True,
        },
    }
    assert _run(tmp_path, **settings) == 0
    assert "only the adapters train" in capsys.readouterr().out
    found = _tensors(tmp_path / "pretrain")
    start = load_file(FOLDER / "model.safetensors")
    head = start["cls.predictions.transform.dense.weight"]
    np.testing.assert_array_equal(found["head/kernel"], head.T)
    norms = [value for name, value in start.items() if "LayerNorm" in name]
    stored = [n for n in found if n.endswith(("gamma", "beta"))]
    assert len(stored) > 4
    for name in stored:
        assert any(map(np.array_equal, [found[name]] * len(norms), norms))
    moved = [np.ptp(v) > 1e-3 for n, v in found.items() if "up_bias" in n]
    assert moved and all(moved)


@pytest.mark.slow
def test_only_adapters_cannot_train_without_a_head(tmp_path, capsys):
    """With a method that adds nothing; each ends with one sentence."""
    encoder = str(whole_runs.SETTINGS["encoder"])
    override = "pretrain.adapters_only=true"
    assert _run(tmp_path, override, encoder=encoder) == 1
    assert f"encoder `{encoder}` has no such head" in capsys.readouterr().err
    # An earlier run would still be there.
    assert not (tmp_path / "pretrain").exists()
    assert _run(tmp_path, override, method="layer_norm") == 1
    assert "this method adds none" in capsys.readouterr().err


@pytest.mark.slow
def test_a_command_with_overwrite_pretrains_once(tmp_path, monkeypatch):
    assert _run(tmp_path) == 0
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 1)
        assert _run(tmp_path, overwrite=True) == 75
        assert not (tmp_path / "pretrain/result.json").exists()
        assert _run(tmp_path, overwrite=True) == 75
    result = tmp_path / "pretrain/result.json"
    stamp = result.stat().st_mtime_ns
    assert not (tmp_path / "result.json").exists()
    assert _run(tmp_path, overwrite=True) == 0
    assert result.stat().st_mtime_ns == stamp
    # Done, so that the next one is a new command.
    assert _run(tmp_path, overwrite=True) == 0
    assert result.stat().st_mtime_ns != stamp


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """The folder of a pretraining whose run is done."""
    folder = tmp_path_factory.mktemp("pretrained") / "run"
    assert _run(folder) == 0
    return folder / "pretrain"


@pytest.mark.slow
def test_a_pretraining_is_evaluated_without_labels(pretrained, capsys):
    assert commands.run(pretrained, mode="eval") == 0
    values = json.loads((pretrained / "result.json").read_text())["validation"]
    assert values["loss"] == -values["log_likelihood"] > 0
    expected = ", ".join(f"{name} {v:.4f}" for name, v in values.items())
    assert f"validation: {expected}\n" in capsys.readouterr().out


@pytest.mark.slow
def test_a_pretraining_predicts_what_stands_behind_masks(pretrained, tmp_path):
    texts = ["the [MASK] is a [MASK]", "no mask", "[MASK] film"]
    lines = tmp_path / "texts.txt"
    lines.write_text("".join(f"{text}\n" for text in texts))
    output = tmp_path / "out.jsonl"
    options = {"input": str(lines), "output": str(output)}
    assert commands.run(pretrained, mode="predict", **options) == 0
    rows = commands.read_rows(output)
    assert [row["sentence"] for row in rows] == texts
    assert [len(row["masks"]) for row in rows] == [2, 0, 1]
    assert commands.run(pretrained, mode="export") == 0
    path = pretrained / "export" / "demo_sentiment" / "1"
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    answer = serve(sentence=tf.constant(texts))
    tokens = answer["tokens"].numpy()
    probabilities = answer["probabilities"].numpy()
    for i, row in enumerate(rows):
        for j, best in enumerate(row["masks"]):
            assert len(best) == 5
            assert [b["token"] for b in best] == [
                token.decode() for token in tokens[i, j]
            ]
            np.testing.assert_allclose(
                [b["probability"] for b in best], probabilities[i, j], atol=1e-5
            )


@pytest.mark.slow
def test_a_pretraining_answers_no_task(pretrained, tmp_path, capsys):
    config = resolve.load_config(pretrained / "config.yaml")
    with pytest.raises(saving.AdapterError, match="cannot solve a task"):
        experiment.Experiment(
            config, tasks.get("demo_sentiment"), pretrained / "adapter"
        )
    (tmp_path / "texts.txt").write_text("a film")
    options = {
        "input": str(tmp_path / "texts.txt"),
        "output": str(tmp_path / "out.json"),
    }
    assert commands.run(pretrained, mode="predict", **options) == 1
    assert "is a masked_lm" in capsys.readouterr().err


@pytest.mark.slow
def test_training_starts_from_the_adapter_but_not_from_its_head(tmp_path):
    assert _run(tmp_path / "run") == 0
    encoder, _ = tf_adapters.load_encoder(str(FOLDER))
    head = tf_adapters.heads.Classification(labels=("a", "b"))
    folder = tmp_path / "run/pretrain/adapter"
    config = adapter_folder.read_adapter_config(folder)
    method = tf_adapters.methods.from_config(config["method"])
    model = tf_adapters.adapt(encoder, method, head)
    fresh = {k: v.numpy() for k, v in model.trained_variables().items()}
    saving.start_from(model, tmp_path / "run/pretrain")
    pretrained = _tensors(tmp_path / "run/pretrain")
    for name, variable in model.trained_variables().items():
        expected = fresh if name.startswith("head/") else pretrained
        np.testing.assert_array_equal(variable.numpy(), expected[name])


@pytest.mark.slow
def test_init_adapter_starts_from_another_task(tmp_path):
    none = {"pretrain": {}}
    assert _run(tmp_path / "first", **none) == 0
    assert (
        _run(
            tmp_path / "second",
            **none,
            task="demo_entailment",
            init_adapter=str(tmp_path / "first"),
            train={"epochs": 1, "learning_rate": 1e-12},
        )
        == 0
    )
    first, second = _tensors(tmp_path / "first"), _tensors(tmp_path / "second")
    for name in first:
        if not name.startswith("head/"):
            np.testing.assert_allclose(second[name], first[name], atol=1e-8)


@pytest.mark.slow
def test_full_fine_tuning_pretrains_everything(tmp_path):
    assert _run(tmp_path / "run", method="full") == 0
    pretrained = _tensors(tmp_path / "run/pretrain")
    assert any("token_embedding" in name for name in pretrained)


@pytest.mark.parametrize(
    ("layer", "message"),
    [
        ({"init_adapter": "nowhere"}, "Give one of the two"),
        ({"init_adapter": "nowhere", "pretrain": {}}, "not an adapter folder"),
    ],
)
def test_mistakes(tmp_path, capsys, layer, message):
    assert _run(tmp_path / "run", **layer) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "method",
    [
        "head_only",
        pytest.param(
            {"name": "pfeiffer", "units": 8, "leave_out": [0]},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_method_that_hands_nothing_on_is_refused(tmp_path, capsys, method):
    settings = {
        "task": "demo_sentiment",
        "method": method,
        "encoder": str(FOLDER),
        "data": {"max_train_examples": 60, "max_length": 16},
        "pretrain": {"steps": 1},
    }
    assert commands.run(tmp_path / "run", settings) == 1
    captured = capsys.readouterr()
    assert "has no other weights. Leave --pretrain_steps out" in captured.err
    assert not list(tmp_path.rglob("adapter"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["eval", "export"])
@pytest.mark.parametrize("task", ["ud_pos", "socialiqa"])
def test_words_and_choices_are_texts_too(task, mode, tmp_path, capsys):
    if task == "ud_pos":
        row = {"tokens": ["the", "film", "is", "good"], "upos": ["DET"] * 4}
    else:
        row = {
            "context": "the film is good",
            "question": "is it",
            "choices": ["bad", "good and very good", "dull"],
            "label": 1,
        }
    folder = "ud/en" if task == "ud_pos" else task
    for split in ("train", "dev"):
        commands.write_rows(tmp_path / folder / f"{split}.jsonl", [row] * 24)
    data = {"data_dir": str(tmp_path), "max_length": 24}
    assert _run(tmp_path / "run", task=task, data=data) == 0
    assert "loss of masked tokens" in capsys.readouterr().out
    assert commands.run(tmp_path / "run/pretrain", mode=mode) == 0


@pytest.mark.slow
def test_another_method_cannot_go_on(tmp_path, capsys):
    assert _run(tmp_path / "first", pretrain={}) == 0
    status = _run(
        tmp_path / "second",
        pretrain={},
        method={"name": "pfeiffer", "units": 4},
        init_adapter=str(tmp_path / "first"),
    )
    assert status == 1
    assert "same method and settings" in capsys.readouterr().err


@pytest.mark.parametrize("steps", [0, 10])
def test_head_settings_of_a_task_of_masked_tokens(steps):
    config = types.SimpleNamespace(
        data=data_settings.DataConfig(),
        pretrain=settings.PretrainConfig(steps=steps),
        seed=3,
        head={"mask_share": 0.4, "reads": "pooled_output"},
    )
    task = tasks.Task("texts", ("text",), head="masked_lm")
    found = new_model.head_settings(config, task)
    # In pretraining, `reads` is for the task that follows. Else it is refused.
    others = {} if steps else {"reads": "pooled_output"}
    assert found == {
        "mask_share": 0.4,
        "whole_words": False,
        "seed": 3,
        **others,
    }
