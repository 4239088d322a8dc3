"""Tests that `tf-adapters merge` refuses flags without an effect."""

import pytest

from tests.cli import subcommands


@pytest.mark.parametrize(
    ("flag", "needed"),
    [
        ("--texts=3", "--how=matched_mean"),
        ("--examples=3", "--weights=search"),
        ("--evaluations=3", "--weights=search"),
    ],
)
def test_flags_without_an_effect_are_refused(flag, needed, capsys):
    flags = ("--adapters=a,b", "--model_dir=c", flag)
    assert subcommands.run("merge", *flags) == 1
    assert f"has an effect only with {needed}" in capsys.readouterr().err
