"""Tests that files are never written through a link."""

import os

import pytest

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError


@pytest.fixture
def outside(tmp_path):
    """Makes a file that the tests must not change."""
    path = tmp_path / "outside.txt"
    path.write_text("mine")
    yield path
    assert path.read_text() == "mine"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.mark.parametrize("link", [os.symlink, os.link])
@pytest.mark.parametrize(
    "name",
    ["a", f".a.{os.getpid()}.partial"],
    # Test processes need equal names for the cases.
    ids=["name", "partial"],
)
def test_a_file_takes_the_place_of_a_link(folder, outside, link, name):
    link(outside, folder / name)
    own_files.replace_file(folder / "a", b"new")
    assert (folder / "a").read_bytes() == b"new"
    assert [path.name for path in folder.iterdir()] == ["a"]


def test_a_log_begins_again_where_its_name_is_a_link(folder, outside):
    (folder / "log").symlink_to(outside)
    for text in ("one", "two"):
        with own_files.open_to_append(folder / "log") as file:
            file.write(text)
    assert (folder / "log").read_text() == "onetwo"


def test_a_link_in_the_place_of_a_folder_is_refused(tmp_path, folder):
    (tmp_path / "elsewhere").mkdir()
    for target in ("elsewhere", "nowhere"):
        (folder / target).symlink_to(tmp_path / target)
        with pytest.raises(UserError, match=f"{target} is a link to .*Remove"):
            own_files.make_folder(folder, target, "inner")
    assert not any((tmp_path / "elsewhere").iterdir())
    assert not (tmp_path / "nowhere").exists()


def test_a_file_in_the_place_of_a_folder_is_refused(folder):
    (folder / "a").write_text("mine")
    with pytest.raises(UserError, match="a is a file, but"):
        own_files.make_folder(folder, "a")


def test_the_first_folder_may_be_a_link_or_lie_below_one(tmp_path, folder):
    (tmp_path / "link").symlink_to(folder)
    own_files.make_folder(tmp_path / "link", "a", "b")
    own_files.make_folder(tmp_path / "link" / "c", "d")
    assert (folder / "a" / "b").is_dir() and (folder / "c" / "d").is_dir()


def test_a_new_folder_is_empty_and_no_link(tmp_path, folder):
    (folder / "a").write_text("mine")
    (tmp_path / "link").symlink_to(folder)
    for name in ("link", "folder", "new"):
        own_files.make_new_folder(tmp_path / name)
        assert not any((tmp_path / name).iterdir())
        assert not (tmp_path / name).is_symlink()
        assert name == "link" or not (folder / "a").exists()
        assert name != "link" or (folder / "a").read_text() == "mine"
