"""A run's adapter in another library's format, and one that is refused."""

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


def _write(model, folder, **options):
    folder.mkdir(parents=True)
    (folder / "weights").write_text(f"{len(list(folder.parent.iterdir()))}")


def test_a_new_export_replaces_the_earlier_one(tmp_path, monkeypatch):
    for _ in range(2):
        folder = _export(tmp_path, monkeypatch, _write)
    # The earlier one lay beside while the new one was written, and is gone.
    assert (folder / "weights").read_text() == "2"
    assert list(folder.parent.iterdir()) == [folder]


def test_a_refused_export_leaves_the_earlier_one(tmp_path, monkeypatch):
    folder = _export(tmp_path, monkeypatch, _write)

    def refuse(model, folder, **options):
        raise AdapterError("no room")

    with pytest.raises(AdapterError, match="no room"):
        _export(tmp_path, monkeypatch, refuse)
    assert (folder / "weights").read_text() == "1"
    assert list(folder.parent.iterdir()) == [folder]
