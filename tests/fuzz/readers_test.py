"""Whatever bytes a file holds, its reader gives rows or an error of ours."""

import functools

import hypothesis
from hypothesis import strategies
import pytest

from tests.fuzz.fragments import FRAGMENTS
from tests.fuzz.targets import TARGETS
from tests.fuzz.templates import TEMPLATES

pytestmark = pytest.mark.integration


def _contents(name):
    """Returns a strategy: pieces in a row, or templates filled with them."""
    piece = strategies.sampled_from(FRAGMENTS[name])
    piece |= strategies.binary(max_size=4)
    pieces = strategies.lists(piece)
    # Few at a time: a file is read until its first mistake.
    values = strategies.lists(piece, min_size=2, max_size=2)
    filled = strategies.builds(
        lambda template, found: functools.reduce(
            lambda text, value: text.replace(b"@", value, 1), found, template
        ),
        strategies.sampled_from(TEMPLATES[name]),
        values,
    )
    return filled | pieces.map(b"".join)


@pytest.mark.parametrize("name", TARGETS)
def test_any_bytes_are_read_or_refused(name, tmp_path):
    @hypothesis.settings(
        max_examples=120, deadline=None, derandomize=True, database=None
    )
    @hypothesis.given(_contents(name))
    def read(content):
        TARGETS[name](tmp_path, content)

    read()


_LONG = (b'"%s"' % (b"x" * 9_000), b"[%s]" % (b"x, " * 2_000))


@pytest.mark.parametrize("name", TARGETS)
def test_a_long_value_is_not_repeated_in_a_message(name, tmp_path):
    # The targets look at the length of their input.
    for template in TEMPLATES[name]:
        for value in _LONG:
            TARGETS[name](tmp_path, template.replace(b"@", value))
