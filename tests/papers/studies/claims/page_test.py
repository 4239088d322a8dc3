"""Tests that the page on claims, and printed differences, follow the rules."""

from pathlib import Path

import pytest

from tf_adapters.papers.studies.claims import verdicts
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import settings as study_settings

PAGE = Path(__file__).parents[4] / "docs" / "claims.md"
WORDS = (verdicts.SHOWN, verdicts.WITHIN, verdicts.OTHER_WAY)
WORDS += (verdicts.LESS_THAN_HALF, verdicts.NOT_SHOWN, verdicts.TOO_SMALL)
WORDS += (verdicts.NOT_TESTABLE, "to be run")


def test_each_row_of_the_page_starts_its_last_column_with_a_verdict():
    parts = PAGE.read_text().split("\n\n")
    (table,) = (part for part in parts if part.startswith("| claim |"))
    rows = table.splitlines()[2:]
    assert len(rows) > 20
    for row in rows:
        last = row.removesuffix(" |").rpartition("| ")[2]
        word, _, reason = last.partition(":")
        assert word in WORDS, row
        assert reason or word not in (verdicts.NOT_TESTABLE, "to be run"), row


def test_differences_by_task_are_those_of_the_printed_tables():
    checked = 0
    for path in declaration.STUDIES.glob("*.yaml"):
        if "    printed:" not in path.read_text():
            continue
        study, _ = declaration.read_study(path)
        for claim in study.claims:
            if study.expected and isinstance(claim.printed, dict):
                for task, printed in claim.printed.items():
                    found = _difference(study, claim, task)
                    message = f"{path.stem}, {claim.says}, {task}"
                    if found is not None:
                        checked += 1
                        assert printed == pytest.approx(found, abs=0.0051), (
                            message
                        )
    assert checked > 80


def _difference(study, claim, task):
    """Returns the difference in the printed table, or `None` without one."""
    columns = study.expected.columns
    if study.paper == "han2021" and task == "mnli":
        task = "mnli_mismatched"
    if task not in columns or claim.of is not None:
        return None
    where = {k: v for k, v in (claim.where or {}).items() if k != "task"}
    high, low = (
        [
            row.values[columns.index(task)]
            for row in study.expected.rows
            if _is_of(row, {**where, **side}, study)
        ]
        for side in (claim.higher, claim.than)
    )
    if not high or len(high) != len(low):
        return None
    return (sum(high) - sum(low)) / len(high)


def _is_of(row, side, study):
    """Returns whether a printed row is a side's. Rows of "best" are not."""
    if "best" in row.runs.values():
        return False
    return study_settings.matches(side, {**study.base, **row.runs})
