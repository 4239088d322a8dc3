"""Tests printed and measured numbers in a report, and its page."""

import base64
import html.parser
import struct
import types

import pytest

from tests.fixtures import studies
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import files
from tf_adapters.papers.studies.report import printed_numbers

GRID = [
    {
        "task": ["sst2", "mnli"],
        "method": ["houlsby"],
        "method.units": [8, 64],
        "seed": [0, 1],
    },
    {"task": ["sst2", "mnli"], "method": ["head_only"], "seed": [0, 1]},
]
COLUMNS = ["sst2", "mnli", "mnli_mismatched", "average"]
HOULSBY = {"method": "houlsby"}
ROWS = [
    {"method": "head_only", "values": [60.0, None, 50.5, 55.0]},
    {
        **HOULSBY,
        "method.units": 64,
        "values": [90.0, 80.0, 70.0, 80.0],
        "errors": [0.5, None, None, None],
    },
    {**HOULSBY, "method.units": "best", "values": [91.0, 80.0, 70.0, None]},
]
PAPER = {
    "paper": "he2021",
    "covers": ["table 2"],
    "shows": "Adapters <beat> a head alone.",
    "missing_data": ["GLUE's test labels are secret."],
    "expected": {"columns": COLUMNS, "rows": ROWS},
    "figures": [{"analysis": "stability"}, {"analysis": "similarity"}],
    "claims": [
        {
            "says": "Adapters are better than a head alone.",
            "higher": HOULSBY,
            "than": {"method": "head_only"},
        }
    ],
}


def _score(run):
    """8 is best on validation for SST-2, 64 for MNLI."""
    units, seed = run.point.get("method.units"), run.config.seed
    value = {None: 0.5, 8: 0.75, 64: 0.7}[units] + 0.02 * seed
    if run.config.task == "mnli":
        value += 0.1 * (units == 64)
    result = {"validation": {"accuracy": value}}
    if run.config.task == "mnli":
        result["validation_mismatched"] = {"accuracy": value - 0.3}
    return result


@pytest.fixture
def parts(tmp_path):
    """Makes a study, its runs and its tables."""
    study, runs = studies.plan(
        tmp_path,
        grid=GRID,
        where=None,
        small=None,
        report={"rows": ["method", "method.units"], "best_of": "method.units"},
        **PAPER,
    )
    results = {run.id: studies.finished(**_score(run)) for run in runs}
    errors = dict.fromkeys(results, "")
    failed = next(run.id for run in runs if run.point["method"] == "head_only")
    results[failed], errors[failed] = None, "Error: no <data>"
    tables = study_cells.make_tables(study, runs, results, errors)
    return study, runs, tables


def _write(parts, folder, pictures=()):
    study, runs, tables = parts
    text = files.write_study_report(
        "demo", "tf-adapters --x='<y>'", study, runs, tables, folder, pictures
    )
    return studies.squeezed(text)


def _side_by_side(parts):
    study, runs, tables = parts
    rows = study_cells.chosen_rows(
        tables.runs, study.report, study.select_over, further=True
    )
    found = printed_numbers.find_printed_numbers(study, runs, rows)
    return {(one.row, one.column): one for one in found}


def test_each_printed_number_is_next_to_the_mean_over_runs(parts):
    found = _side_by_side(parts)
    assert len(found) == 12
    row = "houlsby, method.units 64"
    one = found[row, "sst2"]
    assert (one.printed, one.error, one.runs) == (90.0, 0.5, 2)
    assert one.measured == pytest.approx(71.0)
    assert one.deviation == pytest.approx(2**0.5)
    assert found[row, "mnli_mismatched"].measured == pytest.approx(51.0)
    # 71, 81 and 51.
    assert found[row, "average"].measured == pytest.approx(203 / 3)
    # A run of SST-2 has failed.
    one = found["head_only", "sst2"]
    assert one.runs == 1 and one.deviation is None
    assert one.measured == pytest.approx(52.0)


def test_the_best_of_each_column_has_a_row(parts):
    found = _side_by_side(parts)
    row = "houlsby, method.units best"
    assert found[row, "sst2"].measured == pytest.approx(76.0)  # Of 8.
    assert found[row, "mnli"].measured == pytest.approx(81.0)  # Of 64.


def test_printed_numbers_and_claims_follow_the_table(parts, tmp_path):
    text = _write(parts, tmp_path)
    assert "| houlsby, method.units 64 | printed | 90.0 ± 0.5 | 80.0 |" in text
    assert "| | measured | 71.0 ± 1.4 (2) | 81.0 ± 1.4 (2) |" in text
    assert "- Adapters are better than a head alone. **" in text
    assert "- GLUE's test labels are secret." in text


# What of a picture's file is read: its width and its height.
PNG = b"\x89PNG" + bytes(12) + struct.pack(">II", 1200, 400)


class _Page(html.parser.HTMLParser):
    """Collects the tags of a page that stay open, its texts and sources."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.sources = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        names = dict(attributes)
        self.sources += [names[n] for n in ("src", "href") if n in names]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_the_page_is_whole_and_needs_nothing_else(parts, tmp_path):
    png = tmp_path / "stability.png"
    png.write_bytes(PNG)
    picture = types.SimpleNamespace(
        figure="stability",
        csv=tmp_path / "stability.csv",
        png=png,
        caption="Boxes over seeds.",
    )
    _write(parts, tmp_path, [picture])
    page = _Page((tmp_path / "report.html").read_text())
    assert page.open == []
    data = base64.b64encode(PNG).decode()
    assert page.sources == [f"data:image/png;base64,{data}"]
    text = " ".join(" ".join(page.texts).split())
    for expected in (
        "He et al. 2021: table 2",
        "Adapters <beat> a head alone.",
        "1 of 12 runs have not finished.",
        "Boxes over seeds. Numbers: figures/stability.csv",
        "similarity was not made.",
        "GLUE's test labels are secret.",
        "Error: no <data>",
        "tf-adapters --x='<y>'",
        "abc1234",
        "11 finished of 12",
    ):
        assert expected in text, expected


def test_latex_has_the_table_and_the_printed_numbers(parts, tmp_path):
    _write(parts, tmp_path)
    text = (tmp_path / "table.tex").read_text()
    assert text.count(r"\begin{tabular}") == text.count(r"\bottomrule") == 2
    assert r"mnli\_mismatched" in text and "90.0 ± 0.5" in text
