"""Tests the error messages for unknown names."""

import dataclasses
import typing

import pytest

from tf_adapters.common import checks
from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import UserError


def test_the_nearest_known_name_is_suggested():
    known = {"houlsby": 1, "pfeiffer": 2}
    assert did_you_mean("houlsbi", known) == " Did you mean `houlsby`?"
    assert did_you_mean(3, known) == did_you_mean("x", known) == ""


def test_a_mark_between_fields_is_no_field():
    @dataclasses.dataclass
    class Settings:
        _: dataclasses.KW_ONLY
        kind: typing.Literal["a", "b"] = "a"

    checks.check_choices(Settings())
    with pytest.raises(UserError, match="Unknown kind `c`"):
        checks.check_choices(Settings(kind="c"))
