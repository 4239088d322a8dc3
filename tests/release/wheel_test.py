"""Two builds of one commit are equal, bit for bit."""

import pytest

from release import wheel

pytestmark = [pytest.mark.integration, pytest.mark.slow]


def test_two_builds_have_one_hash(tmp_path):
    first = wheel.build(tmp_path / "a")
    second = wheel.build(tmp_path / "somewhere" / "else")
    assert first == second
    assert [name.rpartition(".")[2] for name in first] == ["whl", "gz"]
