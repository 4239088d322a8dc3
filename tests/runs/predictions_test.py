"""Tests that stored predictions are enough for all metrics."""

import csv
import dataclasses
import gzip
import json

import numpy as np
import pytest
import yaml

from tests import commands
from tests.fixtures import studies
from tests.runs import whole_runs
from tf_adapters import heads
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.report import run_report
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import finished_run
from tf_adapters.runs import predictions
from tf_adapters.runs import task_data
from tf_adapters.tasks.output_kinds import KINDS

pytestmark = pytest.mark.integration

TEXTS = ["the film is good", "it is bad", "the plot is good", "bad film"]
TASKS = {
    "classification": (
        {"text_fields": ["text"], "labels": ["no", "yes"]},
        [{"text": text, "label": i % 2} for i, text in enumerate(TEXTS * 3)],
    ),
    "regression": (
        {"text_fields": ["text"]},
        [{"text": text, "label": i / 7} for i, text in enumerate(TEXTS * 3)],
    ),
    "multilabel": (
        {"text_fields": ["text"], "labels": ["a", "b", "c"]},
        [
            {"text": text, "label": [["a"], ["b", "c"], []][i % 3]}
            for i, text in enumerate(TEXTS * 3)
        ],
    ),
    "choice": (
        {"text_fields": ["text", "choices"]},
        [
            {"text": text, "choices": TEXTS[: 2 + i % 3], "label": i % 2}
            for i, text in enumerate(TEXTS * 3)
        ],
    ),
    "tagging": (
        {"text_fields": ["tokens"], "labels": ["O", "B-X", "I-X"]},
        [
            {
                "tokens": text.split(),
                "tags": [["B-X", "I-X", "O"][j % 3] for j in range(i, i + n)],
            }
            for i, text in enumerate(TEXTS * 3)
            for n in [len(text.split())]
        ],
    ),
    "sentence_vector": (
        {"text_fields": ["a", "b"]},
        [
            {"a": text, "b": TEXTS[(i * i) % 4], "label": i / 3}
            for i, text in enumerate(TEXTS * 3)
        ],
    ),
    "sentence_ranking": (
        {"text_fields": ["a", "b", "c"]},
        [
            {"a": text, "b": TEXTS[-1 - i % 4], "c": f"{text} {i}"}
            for i, text in enumerate(TEXTS * 3)
        ],
    ),
    "span": (
        {"text_fields": ["question", "context"]},
        [
            {
                "id": str(i),
                "question": "what is it",
                "context": text,
                "answers": [{"text": text[4:8], "answer_start": 4}],
            }
            for i, text in enumerate(TEXTS * 3)
        ],
    ),
}


@pytest.fixture(scope="module", params=sorted(TASKS))
def run(request, tmp_path_factory):
    """The folder of a small run with each kind of head."""
    declared, rows = TASKS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    for name in ("train", "dev", "test"):
        commands.write_rows(folder / f"{name}.jsonl", rows)
    files = {"train": "train.jsonl", "validation": "dev.jsonl"}
    task = {
        "name": "tiny",
        "head": request.param,
        "metrics": list(KINDS[request.param].metrics),
        "files": {**files, "test": "test.jsonl"},
        **declared,
    }
    (folder / "tiny.yaml").write_text(yaml.safe_dump(task))
    settings = {
        "method": "houlsby",
        "encoder": commands.ENCODER,
        "data": {"task_file": str(folder / "tiny.yaml"), "max_length": 16},
        "train": {"epochs": 2, "learning_rate": 1e-3, "evaluate_loss": True},
    }
    assert commands.run(folder / "run", settings) == 0
    return folder / "run"


def test_a_results_metrics_are_computed_again(run):
    result = json.loads((run / "result.json").read_text())
    found = predictions.recompute_metrics(run)
    assert set(found) == {"validation", "test"}
    for split, metrics in found.items():
        assert {**metrics, "loss": result[split]["loss"]} == result[split]


def test_its_report_has_the_texts_of_its_mistakes(run):
    paths = run_report.write_report(run)
    with paths["errors"].open(encoding="utf-8", newline="") as file:
        header, *errors = csv.reader(file)
    assert errors and {"row", "right", "predicted"} < set(header)
    words = {word for text in TEXTS for word in text.split()}
    assert words.intersection(" ".join(errors[0]).split())
    assert "not found" not in paths["report"].read_text(encoding="utf-8")
    kind = KINDS[predictions.load_predictions(run, "test").head]
    pictures = {"number": {"scatter"}, "none": set()}
    pictures = pictures.get(kind.label, {"calibration"})
    assert {"curves", *pictures} < set(paths)
    assert "this run" in run_report.describe(run)


def test_an_evaluation_stores_the_probabilities_that_lack(run, caplog):
    stored = predictions.load_predictions(run, "test")
    if "probabilities" not in stored.compared:
        pytest.skip("numbers and ranks have none")
    path = run / "predictions/test.json.gz"
    whole = path.read_bytes()
    content = json.loads(gzip.decompress(whole))
    del content["rows"]["probabilities"], content["labels"]
    old = gzip.compress(json.dumps(content).encode())
    path.write_bytes(old)
    # With other settings these would not be the run's.
    assert (
        commands.run(run, {"data": {"max_test_examples": 5}}, mode="eval") == 0
    )
    assert path.read_bytes() == old
    path.write_bytes(b"damaged")
    assert commands.run(run, mode="eval") == 0
    assert "Predictions were not stored" in caplog.text
    path.write_bytes(old)
    assert commands.run(run, mode="eval") == 0
    assert path.read_bytes() == whole


def test_every_head_is_covered_but_one_that_stores_nothing():
    built_in = set(KINDS) - {"masked_lm"}
    assert set(TASKS) == built_in
    assert heads.HEADS["masked_lm"]._is_scored() is False
    assert all(heads.HEADS[kind]._is_scored() for kind in TASKS)


class _Own(heads.HEADS["classification"]):
    """A classification that is measured in a way of its own."""

    def evaluate(self, names, outputs, targets, source=None):
        return {"accuracy": 0.125}


def test_a_head_that_evaluates_in_its_own_way_stores_nothing():
    outputs, targets = np.eye(2), np.array([0, 1])
    judged = _Own(("a", "b")).judge(["accuracy"], outputs, targets)
    assert judged == ({"accuracy": 0.125}, {})


HEAD = heads.HEADS["classification"](("no", "yes"))
COMPARED = {"target": np.array([0, 1]), "predicted": np.array([1, 1])}


def test_equal_predictions_are_equal_files(tmp_path):
    for name in ("a", "b"):
        predictions.save_predictions(tmp_path / name, "test", HEAD, COMPARED)
    first, second = (
        (tmp_path / name / "predictions/test.json.gz").read_bytes()
        for name in ("a", "b")
    )
    assert first == second
    found = predictions.load_predictions(tmp_path / "a", "test")
    assert len(found) == 2 and found.head == "classification"
    assert found.compared == {"target": [0, 1], "predicted": [1, 1]}


def test_a_run_without_predictions_has_none(tmp_path):
    assert predictions.load_predictions(tmp_path, "test") is None


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"no gzip", id="no gzip"),
        *(
            # Each with its name: compressed bytes hold the time.
            pytest.param(gzip.compress(text), id=text.decode())
            for text in (
                b"{}",
                b'{"head": "span", "rows": {"target": [1]}}',
                b'{"head": "span", "rows": {"target": [1], "predicted": []}}',
                b"[1]",
            )
        ),
    ],
)
def test_what_is_damaged_is_named(tmp_path, content):
    path = tmp_path / "predictions/test.json.gz"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"test\.json\.gz is damaged"):
        predictions.load_predictions(tmp_path, "test")


def test_other_predictions_than_the_stored_ones_do_not_replace_them(tmp_path):
    predictions.save_predictions(tmp_path, "test", HEAD, COMPARED)
    other = {**COMPARED, "predicted": [0, 0], "probabilities": [[1, 0]] * 2}
    predictions.complete_predictions(tmp_path, "test", HEAD, other)
    found = predictions.load_predictions(tmp_path, "test").compared
    assert found == {"target": [0, 1], "predicted": [1, 1]}


def test_a_run_knows_itself_by_the_settings_that_it_trained_with(tmp_path):
    """They may be derived, as those of a fusion that trained its members."""
    asked = resolve.resolve_config(whole_runs.SETTINGS)
    derived = {"init_adapter": "/a", "distribution_strategy": "mirrored"}
    used = dataclasses.replace(asked, **derived)
    studies.finish(used, tmp_path)
    resolve.save_config(asked, tmp_path / earlier_runs.DECLARED)
    rows = task_data.load_task_data(used).rows
    on_one = dataclasses.replace(used, distribution_strategy="one_device")
    assert finished_run._is_own(on_one, tmp_path, rows)
    assert not finished_run._is_own(asked, tmp_path, rows)
    assert not finished_run._is_own(used, tmp_path, {"train": rows["train"]})


def test_a_head_of_a_plugin_needs_it(tmp_path):
    path = tmp_path / "predictions/test.json.gz"
    path.parent.mkdir()
    text = b'{"head": "grade", "rows": {"target": [1], "predicted": [1]}}'
    path.write_bytes(gzip.compress(text))
    with pytest.raises(UserError, match="Unknown head `grade`.*--plugin"):
        predictions.load_predictions(tmp_path, "test")
