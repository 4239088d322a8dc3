"""`make lint` finds words to avoid, and docstrings with other arguments."""

import pytest

from tests.lint import docstrings
from tests.lint import words


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("A run goes on from its\ncheckpoint.", ["goes on from"]),
        ("# It goes on\n# from there.", ["goes on # from"]),
        ("def test_it_goes_on_from_there():", ["goes_on_from"]),
        ("def _normalised(x):", ["normalised"]),
        ("Colours lie beside it.", ["Colours", "beside"]),
        ("It lies besides; an optimistic model normalizes.", []),
    ],
)
def test_words_are_found(text, found):
    words_to_avoid = words.pattern_of(["goes on from", "beside", "colour*"])
    either = words.pattern_of(["normalis*"])
    hits = [*words.find(text, words_to_avoid), *words.find(text, either)]
    assert [hit for _, hit in hits] == found


def test_the_table_is_read():
    assert {"beside", "goes on from", "colour*"} <= set(words.listed())
    assert words.main() == 0


_METHOD = """
class Layer:
    \"\"\"A layer.

    Args:
        {name}: Number of units.
    \"\"\"

    def __init__(self, units):
        self.units = units
"""
_FUNCTION = """
def call(x, mask):
    \"\"\"Returns x where the mask is 1.

    Args:
        {name}: Array.
        mask: Array.
    \"\"\"
    return x * mask
"""


@pytest.mark.parametrize(
    ("code", "right"), [(_METHOD, "units"), (_FUNCTION, "x")]
)
def test_other_arguments_are_found(code, right, tmp_path):
    path = tmp_path / "module.py"
    path.write_text(code.format(name="y"))
    assert "DOC103" in "".join(docstrings.find(path))
    path.write_text(code.format(name=right))
    assert not docstrings.find(path)


def test_docstrings_without_arguments_are_not_checked(tmp_path):
    path = tmp_path / "module.py"
    path.write_text('def f(x):\n    """Returns it.\n\n    Or not.\n    """\n')
    assert not docstrings.find(path)
