"""Tests differences between methods, their errors, and the files."""

import csv
import json

import numpy as np
import pytest
import yaml

from tests import commands
from tests.fixtures import huggingface_folders
from tests.fixtures import studies
from tf_adapters import heads
from tf_adapters.cli import analyse
from tf_adapters.common.errors import UserError
from tf_adapters.data.rows import splits
from tf_adapters.papers.analysis import gains
from tf_adapters.runs import predictions

HITS = {
    ("cb", "pfeiffer"): {"0": [1, 0, 1, 0], "1": [1, 0, 0, 0]},
    ("cb", "fusion"): {"0": [1, 1, 1, 0], "1": [1, 1, 1, 1]},
    ("rte", "pfeiffer"): {"0": [1, 1]},
    ("rte", "fusion"): {"0": [0, 1]},
    ("sick", "pfeiffer"): {"0": [1, 1, 0]},
}
SIZES = {"cb": 250, "rte": 1000, "sick": 1000}


def _table():
    hits = {
        key: {seed: np.array(values, float) for seed, values in seeds.items()}
        for key, seeds in HITS.items()
    }
    return gains.compare_methods(hits, SIZES, "pfeiffer")


def _gain(*key):
    return _table().set_index(["task", "method"]).loc[key]


def test_other_validation_sets_are_refused():
    hits = {("a", "full"): {"0": [1, 0]}, ("a", "houlsby"): {"0": [1, 0, 1]}}
    with pytest.raises(UserError, match="different sizes"):
        gains.compare_methods(hits, {"a": 9}, "full")


def test_differences_are_paired_by_example_and_seed():
    gain = _gain("cb", "fusion")
    assert (gain.accuracy, gain.seeds) == (0.875, 2)
    assert gain.deviation == pytest.approx(np.std([0.75, 1.0], ddof=1))
    # Each example's mean over the seeds: 0, 1, 0.5, 0.5.
    assert gain.difference == 0.5
    assert gain.standard_error == pytest.approx(
        np.sqrt(((0.5**2 + 0.5**2) / 3) / 4)
    )
    baseline = _gain("cb", "pfeiffer")
    assert (baseline.difference, baseline.standard_error) == (0, 0)
    assert np.isnan(_gain("sick", "pfeiffer").deviation)


def test_markdown_has_the_smallest_task_first():
    text = studies.squeezed(gains.markdown(_table(), "pfeiffer"))
    lines = text.splitlines()
    assert lines[0] == "| method | cb (250) | rte (1,000) | sick (1,000) |"
    assert lines[2] == "| `pfeiffer` | 37.5 ± 17.7 | 100.0 | 66.7 |"
    assert lines[3] == (
        "| `fusion` | 87.5 ± 17.7 (+50.0 ± 20.4) | 50.0 (-50.0 ± 50.0) | |"
    )


def test_picture():
    table = _table().assign(baseline="pfeiffer")
    (axes,) = gains.Gains().draw(table).axes
    heights = [bar.get_height() for bar in axes.patches]
    # The smallest training set first; no bar of the baseline.
    assert heights == [50, -50]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels == ["cb\n250", "rte\n1,000"]


def test_stored_predictions_take_the_place_of_a_model(tmp_path, monkeypatch):
    settings = {"task": "sst2", "method": "houlsby", "encoder": "minilm"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    rows = {"train": [{}] * 7, "validation": [{"label": 0}] * 3}
    monkeypatch.setattr(splits, "load_rows", lambda *_: rows)
    head = heads.Classification(labels=("negative", "positive"))
    compared = {"target": [0, 1, 1], "predicted": [0, 0, 1]}
    predictions.save_predictions(tmp_path, "validation", head, compared)
    task, right, size = gains._hits(tmp_path)
    assert (task, right.tolist(), size) == ("sst2", [1, 0, 1], 7)


def test_mistakes(tmp_path, capsys):
    flags = [f"--study_dir={tmp_path}", "--baseline=pfeiffer"]
    assert analyse.run_analysis(["gains", *flags]) == 1
    assert "no runs.csv" in capsys.readouterr().err


@pytest.mark.slow
def test_of_a_real_study(tmp_path, capsys):
    """The accuracies equal those that training wrote."""
    study = tmp_path / "tiny.yaml"
    study.write_text(
        f"""
base:
  encoder: {huggingface_folders.ONE_BLOCK}
  train: {{epochs: 1, early_stopping_patience: null}}
  data: {{max_train_examples: 40, max_length: 16}}
grid:
- {{task: [demo_sentiment, demo_entailment], method: [pfeiffer], seed: [0]}}
- {{task: [demo_sentiment], method: [fusion], seed: [0]}}
where:
- when: {{method: fusion}}
  set:
    members:
      tasks: [demo_sentiment, demo_entailment]
      settings:
        method: pfeiffer
        train: {{epochs: 1, early_stopping_patience: null}}
"""
    )
    status = commands.run(tmp_path, study=str(study), report=False, small=False)
    assert status == 0
    folder = tmp_path / "tiny"
    # The fusions took the study's own runs, and count as finished.
    assert not (folder / "members").exists()
    status = commands.run(tmp_path, study=str(study), report=False, small=False)
    assert status == 0
    assert "3 runs, 3 of them finished" in capsys.readouterr().out
    flags = [f"--study_dir={folder}", "--baseline=pfeiffer"]
    assert analyse.run_analysis(["gains", *flags]) == 0
    assert "`fusion`" in capsys.readouterr().out
    with (folder / "gains.csv").open() as file:
        found = {
            (row["task"], row["method"]): row for row in csv.DictReader(file)
        }
    for path in folder.glob("*/result.json"):
        result = json.loads(path.read_text())
        written = result["validation"]["accuracy"]
        key = result["task"], result["method"]
        accuracy = float(found[key]["accuracy"])
        assert accuracy == pytest.approx(written, rel=1e-5)
    flags = [f"--study_dir={folder}", "--baseline=full"]
    assert analyse.run_analysis(["gains", *flags]) == 1
    assert "Methods of the study: fusion" in capsys.readouterr().err
