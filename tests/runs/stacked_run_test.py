"""Tests MAD-X: a task's adapter on a language's, and another language's."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests import commands
from tests import stored

pytestmark = pytest.mark.integration

ENCODER = Path(__file__).parents[1] / "fixtures/one_block/masked_lm"
WORDS = "the film is a fine one and so was it not dull but long".split()


def _run(folder, settings=None, **options):
    return commands.run(folder, settings, **options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of a task in two languages, and a run of texts for each of them."""
    folder = tmp_path_factory.mktemp("mad_x")
    generator = np.random.default_rng(0)
    for number, language in enumerate(("en", "de")):
        data = folder / "data/ud" / language
        data.mkdir(parents=True)
        for split in ("train", "dev", "test"):
            rows, texts = [], []
            for _ in range(40):
                words = [str(w) for w in generator.choice(WORDS, 6)]
                tags = ["NOUN" if len(w) > 3 else "VERB" for w in words]
                rows.append({"tokens": words, "tags": tags})
                texts.append({"text": " ".join(words)})
            commands.write_rows(data / f"{split}.jsonl", rows)
            commands.write_rows(folder / f"{language}_{split}.jsonl", texts)
        (folder / f"{language}.yaml").write_text(
            f"name: {language}\nhead: masked_lm\ntext_fields: [text]\n"
            f"files: {{train: {language}_train.jsonl, "
            f"validation: {language}_dev.jsonl}}\n"
        )
        settings = {
            **_settings(),
            "task": language,
            "method": {"name": "language_adapter"},
            "seed": number,
        }
        settings["data"]["task_file"] = str(folder / f"{language}.yaml")
        assert _run(folder / f"run_{language}", settings) == 0

    # So far from English that the task's answers change.
    def draw(tensors):
        for name, value in tensors.items():
            noise = 3 * generator.normal(size=value.shape)
            tensors[name] = noise.astype("float32")

    stored.change_weights(folder / "run_de/adapter", draw)
    task = {
        **_settings(),
        "task": "ud_pos",
        "method": {"name": "pfeiffer", "units": 4},
        "stack_on": str(folder / "run_en"),
    }
    task["data"]["data_dir"] = str(folder / "data")
    task["train"]["epochs"] = 10
    assert _run(folder / "tagger", task) == 0
    return folder


def _settings():
    return {
        "encoder": str(ENCODER),
        "data": {"max_length": 16},
        "train": {"epochs": 1, "learning_rate": 3e-2, "batch_size": 16},
    }


def test_texts_train_a_language_from_the_checkpoints_own_head(folder):
    result = json.loads((folder / "run_en/result.json").read_text())
    assert (
        result["validation"]["log_likelihood"]
        > result["before"]["log_likelihood"]
    )
    names = load_file(folder / "run_en/adapter/adapter.safetensors")
    assert any(name.startswith("invertible/") for name in names)


def test_the_tasks_adapter_alone_is_saved(folder):
    names = load_file(folder / "tagger/adapter/adapter.safetensors")
    assert {name.split("/")[0] for name in names} == {
        "block_0_after_ffn",
        "head",
    }
    config = json.loads(
        (folder / "tagger/adapter/adapter_config.json").read_text()
    )
    assert [member["name"] for member in config["members"]] == ["run_en"]


def _accuracies(folder, capsys, **options):
    options = {"mode": "eval", **options}
    capsys.readouterr()
    assert (
        _run(
            folder / "tagger",
            {"data": {"eval_languages": ["en", "de"]}},
            **options,
        )
        == 0
    )
    lines = capsys.readouterr().out.splitlines()
    return {line.split()[0]: line.split()[-1] for line in lines[:2]}


def test_each_language_is_answered_on_its_own_adapter(folder, capsys):
    on_english = _accuracies(folder, capsys)
    result = json.loads((folder / "tagger/result.json").read_text())
    assert on_english["en"] == f"{result['test']['accuracy']:.4f}"
    german = str(folder / "run_de")
    override = [f"language_adapters={{de: {german}}}"]
    each = _accuracies(folder, capsys, params_override=override)
    override = [f"stack_on={german}"]
    on_german = _accuracies(folder, capsys, params_override=override)
    assert each == {"en": on_english["en"], "de": on_german["de"]}
    assert on_german != on_english


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("stack_on=nowhere", "there is no such folder"),
        ("language_adapters=[de]", "is a mapping"),
        ("language_adapters={de: nowhere}", "not an adapter folder"),
        ("language_adapters={dee: nowhere}", "`dee`"),
    ],
)
def test_mistakes_are_reported(folder, capsys, override, message):
    settings = {"data": {"eval_languages": ["de"]}}
    options = {"mode": "eval", "params_override": [override]}
    assert _run(folder / "tagger", settings, **options) == 1
    assert message in capsys.readouterr().err


def test_adapters_of_languages_need_one_to_take_the_place_of(tmp_path, capsys):
    settings = {"task": "ud_pos", "method": "pfeiffer"}
    settings["language_adapters"] = {"de": "runs/de"}
    assert _run(tmp_path, settings) == 1
    assert "--stack_on=" in capsys.readouterr().err


def test_a_fusion_is_stacked_on_nothing(folder, tmp_path, capsys):
    method = {"name": "fusion", "adapters": ["a", "b"]}
    settings = {**_settings(), "task": "ud_pos", "method": method}
    settings["stack_on"] = str(tmp_path)
    settings["data"]["data_dir"] = str(folder / "data")
    assert _run(tmp_path / "run", settings) == 1
    assert "leave --stack_on out" in capsys.readouterr().err
