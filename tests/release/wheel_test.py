"""Two builds of one commit are equal, bit for bit."""

import pytest

from release import wheel

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_two_builds_have_one_hash(tmp_path):
    first_folder = tmp_path / "a"
    first_folder.mkdir()
    # An earlier version's wheel is not what this build made.
    (first_folder / "tf_adapters-0.0.1-py3-none-any.whl").touch()
    first = wheel.build(first_folder)
    second = wheel.build(tmp_path / "somewhere" / "else")
    assert first == second
    assert [name.rpartition(".")[2] for name in first] == ["whl", "gz"]
