"""Tests that a run in a folder with links changes nothing outside."""

import numpy as np
import pytest

from tests.runs import whole_runs
from tf_adapters import heads
from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.papers.baselines import no_bert_search
from tf_adapters.runs import checkpoints
from tf_adapters.runs import predictions
from tf_adapters.runs import run_folder

HEAD = heads.Classification(("no", "yes"))
COMPARED = {"target": np.array([0, 1]), "predicted": np.array([1, 1])}


@pytest.fixture(scope="module")
def config():
    return resolve.resolve_config(whole_runs.SETTINGS)


@pytest.fixture
def outside(tmp_path):
    """A file and a folder that nothing here may change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "mine"


@pytest.fixture
def folder(tmp_path, config):
    """A run folder before its run."""
    (tmp_path / "run").mkdir()
    resolve.save_config(config, tmp_path / "run" / "config.yaml")
    (tmp_path / "run" / "log.txt").touch()
    return tmp_path / "run"


def _write_all(folder, config):
    run = run_folder.RunFolder(folder, config, {}, overwrite=True)
    run.log({"step": 1, "loss": 0.5})
    run.save_text("trained_weights.txt", "a table")
    run.save_checkpoint(1, {"w": np.ones(1)}, {})
    run.save_predictions("test", HEAD, COMPARED)
    run.save_predictions("transfer/de", HEAD, COMPARED)
    run.save_result({"data_fingerprint": {}})


@pytest.mark.parametrize(
    "name",
    [
        *(".lock", "config.yaml", "declared.yaml", "metrics.jsonl"),
        *(".metrics.jsonl.partial", "result.json", ".result.json.partial"),
        *("trained_weights.txt", "error.txt", ".config.yaml.partial"),
    ],
)
def test_a_run_writes_no_file_through_a_link(folder, outside, config, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside / "mine.txt")
    _write_all(folder, config)
    assert (folder / "metrics.jsonl").read_text().count("\n") == 1
    assert not (folder / "result.json").is_symlink()


@pytest.mark.parametrize(
    "name",
    [
        *("adapter", "encoder", "snapshots", "checkpoints", "predictions"),
        "tensorboard",
    ],
)
@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_run_refuses_folders_that_are_links(
    folder, outside, config, name, target
):
    (folder / name).symlink_to(outside.with_name(target))
    for overwrite in (False, True):
        with pytest.raises(UserError, match=f"{name} is a link to"):
            run_folder.RunFolder(folder, config, {}, overwrite)
    assert not outside.with_name("nowhere").exists()


def test_the_folder_of_a_run_may_be_a_link_or_lie_below_one(tmp_path, config):
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    for folder in (tmp_path / "link", tmp_path / "link" / "run"):
        _write_all(folder, config)
        assert (folder / "result.json").exists()


def test_the_folder_of_one_of_several_tasks_is_no_link(folder, outside, config):
    several = resolve.resolve_config(
        {"method": {"name": "multitask", "tasks": ["rte", "sst2"]}}
    )
    (folder / "sst2").symlink_to(outside)
    with pytest.raises(UserError, match="sst2 is a link to"):
        run_folder.RunFolder(folder, several, {}, overwrite=True)


def test_predictions_are_not_written_through_a_link(folder, outside):
    made = folder / "predictions"
    made.mkdir()
    (made / "test.json.gz").symlink_to(outside / "mine.txt")
    predictions.save_predictions(folder, "test", HEAD, COMPARED)
    assert len(predictions.load_predictions(folder, "test")) == 2
    (made / "transfer").symlink_to(outside)
    with pytest.raises(UserError, match="transfer is a link to"):
        predictions.save_predictions(folder, "transfer/de", HEAD, COMPARED)


def test_a_checkpoint_takes_the_place_of_a_link(folder, outside):
    (folder / "00000010").symlink_to(outside)
    saved = checkpoints.Checkpoint(10, {"w": np.ones(1)}, {})
    checkpoints.save_checkpoint(folder, saved)
    assert checkpoints.newest_checkpoint(folder).step == 10
    assert not (folder / "00000010").is_symlink()


def test_a_search_writes_no_trials_through_a_link(folder, outside, config):
    pytest.importorskip("optuna")
    (folder / no_bert_search.TRIALS).symlink_to(outside / "mine.txt")
    no_bert_search._open_study(folder, config, {})
    assert (folder / no_bert_search.TRIALS).stat().st_size > 0
