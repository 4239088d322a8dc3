"""Tests the project's main command, as a user types it."""

import json
import random
import subprocess
import sys

import pytest

from tests import commands
from tests.runs import whole_runs

WORDS = ("a man", "a dog", "the film", "walks", "sleeps", "is good")


def _rows(labels, count, seed):
    draw = random.Random(seed)
    return [
        {
            "sentence1": " ".join(draw.choices(WORDS, k=4)),
            "sentence2": " ".join(draw.choices(WORDS, k=3)),
            "label": draw.choice(labels),
        }
        for _ in range(count)
    ]


@pytest.mark.slow
def test_train_py_task_mnli_method_fusion(tmp_path):
    """Runs both stages, with local files and a short list of members."""
    entailment = ["entailment", "not_entailment"]
    labels = {
        "mnli": ["entailment", "neutral", "contradiction"],
        "rte": entailment,
    }
    for task, names in labels.items():
        for split, count in (("train", 48), ("dev", 16)):
            path = tmp_path / "data" / task / f"{split}.jsonl"
            commands.write_rows(path, _rows(names, count, seed=count))
    # Both of MNLI's validation sets, under the names of the official download.
    folder = tmp_path / "data" / "mnli"
    rows = _rows(labels["mnli"], 12, seed=1)
    commands.write_rows(folder / "dev_mismatched.jsonl", rows)
    command = [
        *(sys.executable, str(whole_runs.ROOT / "train.py")),
        *("--task=mnli", "--method=fusion"),
        *(f"--data_dir={tmp_path / 'data'}", "--max_length=32"),
        *(f"--encoder={commands.ENCODER}", "--epochs=1"),
        "--params_override=members.tasks=[mnli,rte]",
        "--params_override=members.settings.train.epochs=1",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "first trains an adapter for each task" in done.stdout
    run = tmp_path / "runs" / "mnli_fusion_0"
    result = json.loads((run / "result.json").read_text())
    assert 0 <= result["validation"]["accuracy"] <= 1
    assert 0 <= result["validation_mismatched"]["accuracy"] <= 1
    assert "validation_mismatched: accuracy" in done.stdout
    config = json.loads((run / "adapter/adapter_config.json").read_text())
    assert [member["name"] for member in config["members"]] == ["mnli", "rte"]
