"""Tests the export of a run's adapter to other libraries' formats."""

import types

import pytest

from tf_adapters.common.errors import AdapterError
from tf_adapters.export import foreign


def _export(folder, monkeypatch, save):
    run = types.SimpleNamespace(
        model=None, task=types.SimpleNamespace(name="rte")
    )
    monkeypatch.setattr(
        foreign.finished_run, "load_to_export", lambda *arguments: run
    )
    monkeypatch.setattr(foreign.saving, "save_adapter", save)
    return foreign.export_adapter(None, folder, "peft")


def _write(text):
    def save(model, folder, **options):
        folder.mkdir(parents=True)
        (folder / "weights").write_text(text)

    return save


def test_a_new_export_replaces_the_earlier_one(tmp_path, monkeypatch):
    for text in ("one", "two"):
        folder = _export(tmp_path, monkeypatch, _write(text))
    assert (folder / "weights").read_text() == "two"
    assert folder == tmp_path / "peft" / "rte"
    assert list(folder.parent.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == [folder.parent]


def test_a_refused_export_leaves_the_earlier_one(tmp_path, monkeypatch):
    folder = _export(tmp_path, monkeypatch, _write("one"))

    def refuse(model, folder, **options):
        folder.mkdir(parents=True)
        raise AdapterError("no room")

    with pytest.raises(AdapterError, match="no room"):
        _export(tmp_path, monkeypatch, refuse)
    assert (folder / "weights").read_text() == "one"
    assert list(folder.parent.iterdir()) == [folder]
    assert list(tmp_path.iterdir()) == [folder.parent]
