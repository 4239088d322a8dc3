"""Tests that messages cut long received values."""

import pytest

from tf_adapters.common import errors


@pytest.mark.parametrize("value", ["x", "x" * 198, 3, None, [1, "a"]])
def test_a_short_value_is_shown_whole(value):
    assert errors.shown(value) == repr(value)


@pytest.mark.parametrize("value", ["x" * 199, list(range(10**5)), 10**300])
def test_a_long_value_is_cut_to_200_characters(value):
    text = errors.shown(value)
    assert len(text) == 200
    assert text.endswith("...")
    assert repr(value).startswith(text.removesuffix("..."))


def test_a_value_nested_too_deeply_for_its_repr_is_described():
    nested = []
    for _ in range(10**5):
        nested = [nested]
    assert errors.shown(nested) == "a list that is nested too deeply"


@pytest.mark.parametrize("length", [200, 201])
def test_a_text_has_no_quotes_and_is_cut(length):
    text = errors.cut("x" * length)
    assert text == ("x" * 200 if length == 200 else "x" * 197 + "...")
