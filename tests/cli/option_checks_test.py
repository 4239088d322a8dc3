"""Tests that a command does not write over its input or a folder."""

import os
import types

import pytest

from tf_adapters.cli import option_checks
from tf_adapters.common.errors import ConfigError


def _check(mode, given, output):
    option_checks.check_input(
        types.SimpleNamespace(
            mode=mode,
            input=str(given),
            output=str(output),
            glue_submission=None,
        )
    )


def test_the_output_is_not_the_input(tmp_path):
    names = ("a.csv", "b.csv", "link.csv")
    rows, other, link = (tmp_path / name for name in names)
    rows.write_text("text\na\n")
    other.write_text("")
    link.symlink_to(rows)
    for output in (rows, link, tmp_path / ".." / tmp_path.name / "a.csv"):
        with pytest.raises(ConfigError, match="the same file.*another name"):
            _check("predict", rows, output)
    for output in (other, tmp_path / "new" / "c.csv"):
        _check("predict", rows, output)
    _check("predict", "-", other)


def test_the_output_is_a_file_that_can_be_written(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for output in (pipe, os.devnull):
        with pytest.raises(ConfigError, match="a device or a pipe"):
            _check("predict", "-", output)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ConfigError, match="no file can be written in"):
        _check("predict", "-", file / "new" / "c.csv")


@pytest.mark.parametrize("mode", ["predict", "encode"])
def test_the_output_is_not_a_folder(tmp_path, mode):
    folder = tmp_path / "x.npy"
    folder.mkdir()
    with pytest.raises(ConfigError, match="x.npy is a folder. Give the name"):
        _check(mode, "-", folder)
