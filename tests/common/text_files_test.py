"""Tests JSON and YAML that break parsers, and atomic writes."""

import time

import pytest

from tf_adapters.common import own_files
from tf_adapters.common import text_files


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: Expecting property name .* at column 2"),
        ('{"a": 1,\n"b"}', "at line 2, column 4"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": ' * 100_000, "nested too deeply"),
        ("9" * 5000, "Exceeds the limit"),
        (r'["\ud800"]', "'.ud800' is half a character"),
        (r'{"\udc00": 1}', "'.udc00' is half a character"),
    ],
)
def test_json_that_cannot_be_used(text, message):
    with pytest.raises(ValueError, match=message):
        text_files.parse_json(text)


def test_pairs_of_surrogates_are_characters():
    assert text_files.parse_json(r'"\ud83d\ude00"') == "\U0001f600"


class _Text(str):
    """A text whose characters must not be read one by one, which is slow."""

    def __iter__(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", True),
        ("é\0\U0001f600", True),
        ("a\ud800", False),
        ("\udfff", False),
    ],
)
def test_texts_with_half_a_character(text, expected):
    assert text_files.is_unicode(_Text(text)) == expected


_BILLIONS = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
_MERGES = "a: &a {x: 1}\n" + "".join(
    f"{new}: &{new} {{<<: [*{old}, *{old}]}}\n"
    for old, new in zip(
        "abcdefghijklmnopqrstuvwx", "bcdefghijklmnopqrstuvwxy", strict=True
    )
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [", "not valid YAML"),
        ("a: \0", "not valid YAML"),
        ("[" * 3000, "nested too deeply"),
        ("- " * 3000, "nested too deeply"),
        ("a: !!int ''", "not YAML that can be read"),
        ("a: !!timestamp x", "not YAML that can be read"),
        ("a: !!bool x", "not YAML that can be read"),
        ("a: 0x_", "not YAML that can be read"),
        ("a: 2001-99-99", "not YAML that can be read"),
        ("a: " + "9" * 5000, "not YAML that can be read"),
        (r'a: ["\ud800"]', "'.ud800' is half a character"),
        ("&a [*a]", "refers to a value that contains it"),
        (_BILLIONS, "more than 100,000 values"),
        ("a: 1\nb: 2\na: 3", "`a` is given twice, the second time in line 3"),
        ("x: {'a': 1, a: 2}", "`a` is given twice"),
        (_MERGES, "more than 100,000 values"),
    ],
)
def test_yaml_that_cannot_be_used(text, message):
    started = time.monotonic()
    with pytest.raises(ValueError, match=message):
        text_files.parse_yaml(text)
    assert time.monotonic() - started < 5


def test_aliases_are_read():
    assert text_files.parse_yaml("a: &x [1]\nb: *x") == {"a": [1], "b": [1]}
    assert text_files.parse_yaml("") is None


def test_a_file_has_its_old_text_until_it_has_the_new(tmp_path, monkeypatch):
    def stopped(*_):
        raise OSError("stopped before the new file takes its place")

    text_files.replace_text(tmp_path / "a", "old")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="stop"):
        patch.setattr(own_files.os, "replace", stopped)
        text_files.replace_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "old"
    text_files.replace_text(tmp_path / "a", "new")
    assert (tmp_path / "a").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
