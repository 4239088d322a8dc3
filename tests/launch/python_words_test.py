"""Tests that messages of functions name arguments instead of flags."""

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.launch import python_words


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Add --head=regression to it.", 'Add head="regression" to it.'),
        ("name one with --text=.", "name one with text=."),
        (
            "(--test=<file> gives others)",
            "(test=<file> gives others)",
        ),
        ("--model_dir=runs/x is no folder", "model_dir=runs/x is no folder"),
        ("or give another --model_dir.", "or give another model_dir."),
        ("or --overwrite to remove it.", "or overwrite=True to remove it."),
        ("a -- b, x--yes", "a -- b, x--yes"),
    ],
)
def test_flags_become_arguments(message, expected):
    assert python_words.in_python(message) == expected


def test_an_error_keeps_its_class_and_names_the_argument():
    with (
        pytest.raises(
            DataError, match="^`data` has no --- line with text=x/y$"
        ),
        python_words.errors_in_python([("/a/b.jsonl", "data")]),
    ):
        raise DataError("/a/b.jsonl has no --- line with --text=x/y")
