"""Tests that damaged files of a search are named."""

import json
import os
import pathlib

import pytest

from tests.runs import whole_runs
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.launch.search_folder import SearchFolder
from tf_adapters.launch.search_journal import SearchJournal


@pytest.mark.parametrize("text", ["[", "[]", '{"settings": {}}', '{"a": 1}'])
def test_damaged_files_are_named(tmp_path, text):
    search = SearchFolder(tmp_path)
    search.write_trial(0, {"train": {"epochs": 1}}, 2)
    assert search.read_trial(0) == ({"train": {"epochs": 1}}, 2)
    (tmp_path / "trials/001/trial.json").write_text(text)
    with pytest.raises(ConfigError, match=r"trial\.json is damaged: "):
        search.read_trial(0)


@pytest.mark.parametrize("text", ["[", "[]"])
def test_damaged_settings_are_named(tmp_path, text):
    search = SearchFolder(tmp_path)
    (tmp_path / "search.json").write_text(text)
    config = resolve.resolve_config(whole_runs.SETTINGS)
    with pytest.raises(ConfigError, match=r"search\.json is damaged: "):
        search.check_same(config, ["houlsby"], {})


def test_a_folder_that_no_search_wrote_is_left_alone(tmp_path):
    own = tmp_path / "trials" / "patient_7.csv"
    own.parent.mkdir()
    own.write_text("a,b")
    with pytest.raises(ConfigError, match="no search wrote"):
        SearchFolder(tmp_path, overwrite=True)
    assert own.exists()
    (tmp_path / "search.json").write_text("{}")
    SearchFolder(tmp_path, overwrite=True)
    assert not own.exists()


def test_a_search_of_an_earlier_version_goes_on(tmp_path):
    """It did not have all settings."""
    search = SearchFolder(tmp_path)
    config = resolve.resolve_config(whole_runs.SETTINGS)
    search.check_same(config, ["houlsby"], {})
    path = tmp_path / "search.json"
    stored = json.loads(path.read_text())
    path.write_text(json.dumps({**stored, "seed": 7}))
    with pytest.raises(ConfigError, match="seed: 7 there, 0 now"):
        search.check_same(config, ["houlsby"], {})
    path.write_text(json.dumps(stored))
    for change in ({"head": {"dropout_rate": 0.5}}, {"train": {"remat": True}}):
        other = resolve.resolve_config(whole_runs.SETTINGS, change)
        path.write_text(
            json.dumps({k: v for k, v in stored.items() if k != "train.remat"})
        )
        with pytest.raises(ConfigError, match="holds a search with other"):
            search.check_same(other, ["houlsby"], {})
    del stored["train.remat"]
    path.write_text(json.dumps(stored))
    search.check_same(config, ["houlsby"], {})


def test_a_setting_that_is_left_out_is_a_difference(tmp_path):
    """A setting of an earlier version that is gone makes no difference."""
    search = SearchFolder(tmp_path)
    config = resolve.resolve_config(whole_runs.SETTINGS)
    given = {"head": {"dropout_rate": 0.5}}
    other = resolve.resolve_config(whole_runs.SETTINGS, given)
    search.check_same(other, ["houlsby"], {})
    with pytest.raises(ConfigError, match="dropout_rate: 0.5 there, None now"):
        search.check_same(config, ["houlsby"], {})
    search.check_same(other, ["houlsby"], {})
    path = tmp_path / "search.json"
    stored = json.loads(path.read_text())
    gone = {"train.gone": 1, "gone": 1, "method.gone": 1}
    gone["train.deterministic"] = True  # No longer identifies a search.
    path.write_text(json.dumps({**stored, **gone}))
    search.check_same(other, ["houlsby"], {})


def test_the_lock_of_a_process_that_was_killed_is_removed(
    tmp_path, monkeypatch
):
    """Optuna would wait for it without end: the link points nowhere."""
    pytest.importorskip("optuna")
    monkeypatch.chdir(tmp_path)
    os.makedirs("runs/tune")
    os.symlink("runs/tune/trials.log", "runs/tune/trials.log.lock")
    journal = SearchJournal(pathlib.Path("runs/tune/trials.log"), 0, [])
    assert journal.done == 0
