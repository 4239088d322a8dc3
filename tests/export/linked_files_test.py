"""Tests that an export into a folder with links changes nothing outside."""

import types

import pytest

from tf_adapters.common.errors import UserError
from tf_adapters.export import saved_model
from tf_adapters.export import serving
from tf_adapters.runs import finished_run


@pytest.fixture
def outside(tmp_path):
    """Makes a folder that the tests must not change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    yield folder
    assert [path.name for path in folder.iterdir()] == ["mine.txt"]
    assert (folder / "mine.txt").read_text() == "mine"


def test_the_list_of_models_takes_the_place_of_a_link(tmp_path, outside):
    (tmp_path / "films" / "1").mkdir(parents=True)
    (tmp_path / serving.CONFIG_FILE).symlink_to(outside / "mine.txt")
    path = serving.write_models_config(tmp_path)
    assert 'name: "films"' in path.read_text()


@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_version_is_no_link(tmp_path, outside, target):
    folder = tmp_path / "films"
    folder.mkdir()
    for name in (".1.partial", "1"):
        (folder / name).symlink_to(outside.with_name(target))
    for number in (2, 3):
        partial, version = saved_model._next_version(folder)
        (partial / "saved_model.pb").write_text("a graph")
        partial.rename(version)
        assert version == folder / str(number)
    assert not outside.with_name("nowhere").exists()


@pytest.mark.parametrize("name", ["export", "export/films"])
def test_the_folders_of_an_export_are_no_links(
    tmp_path, outside, monkeypatch, name
):
    run = types.SimpleNamespace(task=types.SimpleNamespace(name="films"))
    monkeypatch.setattr(finished_run, "load_to_export", lambda *_: run)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).symlink_to(outside)
    with pytest.raises(UserError, match=f"{name} is a link to"):
        saved_model.export_run(None, tmp_path)
