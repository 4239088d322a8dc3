"""Tests that the tables of guarantees name existing tests."""

import ast

import pytest

from tests.reliability import table

ROWS = table.FAULTS + table.EQUAL


def test_the_document_has_the_tables():
    """`python -m tests.reliability.table` writes them."""
    counts = table.written_counts()
    assert table.updated(counts) == table.DOCUMENT.read_text(encoding="utf-8")
    assert set(counts) == {row.command for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.command)
def test_each_line_has_its_tests(row):
    tree = ast.parse((table.ROOT / row.file).read_text(encoding="utf-8"))
    tests = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test")
    ]
    text = " ".join(tests) + (" full" if "bad_input" in row.file else "")
    for word in row.tests.split(" or "):
        assert word in text


def test_all_that_was_tried_held():
    for tried, held in table.written_counts().values():
        assert tried == held


def test_counts_come_from_the_results_of_tests(tmp_path):
    path = tmp_path / "all.xml"
    path.write_text(
        "<testsuites><testsuite>"
        '<testcase classname="tests.runs.recovery_test" name="test_twenty">'
        '<properties><property name="faults" value="20"/></properties>'
        "</testcase>"
        '<testcase classname="tests.runs.recovery_test" name="test_x[a]"/>'
        '<testcase classname="tests.runs.recovery_test" name="test_x[b]">'
        "<failure/></testcase>"
        '<testcase classname="tests.other_test" name="test_x[c]"/>'
        "</testsuite></testsuites>"
    )
    file = "tests/runs/recovery_test.py"
    assert table.count(table.Row("", "", file, "twenty"), path) == (20, 20)
    assert table.count(table.Row("", "", file, "no or x"), path) == (2, 1)
