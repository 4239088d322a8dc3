"""Tests that damaged files of a search are named."""

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
