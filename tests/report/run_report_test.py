"""Tests the report of a run, also with missing files."""

import json
from pathlib import Path
import sys
import types

import pytest

from tests import commands
from tests.report import stored_runs
from tf_adapters import heads
from tf_adapters.cli import report as cli_report
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.data.rows import sampling
from tf_adapters.report import classes
from tf_adapters.report import run_files
from tf_adapters.report import run_report
from tf_adapters.runs import predictions

# 17 of 20 are ham, and the run finds none of the other 3.
ROWS = stored_runs.mails(17, 3)
COMPARED = {
    "target": [0] * 17 + [1] * 3,
    "predicted": [1] + [0] * 19,
    "probabilities": [[0.4, 0.6]] + [[0.8, 0.2]] * 19,
}


@pytest.fixture
def run(tmp_path):
    return stored_runs.write(tmp_path, stored_runs.HAM, ROWS, COMPARED)


def _page(run, **options):
    return run_report.write_report(run, **options)["report"].read_text("utf-8")


def test_the_screen_has_the_matrix_recalls_and_the_most_frequent_class(run):
    lines = [line.split() for line in run_report.describe(run).splitlines()]
    assert ["this", "run", "0.8000", "0.4444"] in lines
    assert ["always", '"ham"', "0.8500", "0.4595"] in lines
    assert ["ham", "16", "1"] in lines and ["spam", "3", "0"] in lines
    assert lines[-1][:5] == ["No", "better", "than", "always", '"ham":']
    by_class = [line for line in lines if line[:2] == ["ham", "17"]]
    assert by_class[0][2:5] == ["0.8421", "0.9412", "0.8889"]


def test_a_run_that_is_better_is_not_warned_of(tmp_path):
    right = {**COMPARED, "predicted": COMPARED["target"]}
    run = stored_runs.write(tmp_path, stored_runs.HAM, ROWS, right)
    assert "No better" not in run_report.describe(run)
    assert "There are none." in _page(run)


def test_the_files_are_there(run):
    (run / "metrics.jsonl").write_text(
        '{"step": 1, "loss": 0.5}\n{"step": 1, "validation": {"accuracy": 1}}\n'
    )
    paths = run_report.write_report(run)
    assert set(paths) == {
        *("report", "errors", "confusion", "calibration", "curves")
    }
    page = paths["report"].read_text("utf-8")
    assert page.count("data:image/png;base64,") == 3
    assert all(path.stat().st_size for path in paths.values())


def test_a_text_is_no_html(tmp_path):
    rows = [{**row, "text": "<script>a && b</script>"} for row in ROWS]
    page = _page(stored_runs.write(tmp_path, stored_runs.HAM, rows, COMPARED))
    assert "&lt;script&gt;a &amp;&amp; b&lt;/script&gt;" in page
    assert "<script" not in page


def test_texts_of_other_data_are_not_taken(tmp_path, run):
    rows = [{**row, "text": "another"} for row in ROWS]
    commands.write_rows(tmp_path / "data/test.jsonl", rows)
    page = _page(run)
    assert "the data there differs from the run's" in page
    assert "another<" not in page


@pytest.mark.parametrize("is_known", [True, False])
def test_texts_of_a_language_are_compared_if_the_run_knows_them(
    tmp_path, monkeypatch, is_known
):
    known = {"de": sampling.fingerprint(ROWS)} if is_known else {}
    run = stored_runs.write(
        *(tmp_path, stored_runs.HAM, ROWS, COMPARED),
        transfer_fingerprint=known,
    )
    predictions.save_predictions(run, "transfer/de", stored_runs.HAM, COMPARED)
    rows = [{**row, "text": "another"} for row in ROWS]
    monkeypatch.setattr(
        run_files.zero_shot_transfer,
        "load_languages",
        lambda task, data: {"de": ("test", rows)},
    )
    page = _page(run, split="transfer/de")
    assert ("the data there differs from the run's" in page) == is_known
    assert ("another<" in page) != is_known
    assert ("texts of mistakes were not checked" in page) != is_known


def test_without_the_data_the_rows_have_numbers(tmp_path, run):
    (tmp_path / "data/test.jsonl").unlink()
    paths = run_report.write_report(run)
    assert "texts of mistakes were not found" in paths["report"].read_text()
    first = paths["errors"].read_text().splitlines()[:2]
    assert first == ["row,right,predicted,probability", "17,spam,ham,0.8"]


def test_the_command_reads_data_that_have_moved(run, monkeypatch):
    given = []
    monkeypatch.setattr(
        run_report, "write_report", lambda *a, **o: given.append((a, o)) or {}
    )
    options = types.SimpleNamespace(model_dir=None, plugin=[])
    layer = {"data": {"data_dir": "moved"}}
    cli_report.run_report(options, layer, [str(run)])
    assert given == [((Path(run),), {"data_dir": "moved"})]


def test_without_matplotlib_there_are_html_and_csv(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert set(run_report.write_report(run)) == {"report", "errors"}
    assert "pip install 'tf_adapters[report]'" in capsys.readouterr().out
    assert "tf_adapters[report]" in (run / "report/report.html").read_text()


def test_pictures_of_an_earlier_report_go(run):
    run_report.write_report(run)
    (run / "report/scatter.png").write_bytes(b"")
    run_report.write_report(run)
    assert not (run / "report/scatter.png").exists()


def test_predictions_of_an_earlier_version_have_no_calibration(tmp_path):
    old = {key: COMPARED[key] for key in ("target", "predicted")}
    run = stored_runs.write(tmp_path, stored_runs.HAM, ROWS, old)
    paths = run_report.write_report(run)
    assert "stored without probabilities" in paths["report"].read_text()
    assert "calibration" not in paths
    assert paths["errors"].read_text().splitlines()[1] == "0,mail 0,ham,spam,"


def test_a_run_without_predictions_has_its_result(tmp_path):
    run = stored_runs.write(
        tmp_path, stored_runs.HAM, ROWS, None, validation={"accuracy": 0.25}
    )
    assert "validation  accuracy  0.2500" in run_report.describe(run)
    assert set(run_report.write_report(run)) == {"report"}


def test_a_split_is_chosen(run):
    other = {**COMPARED, "predicted": COMPARED["target"]}
    predictions.save_predictions(run, "validation", stored_runs.HAM, other)
    assert run_report.describe(run).startswith("mail: 20 rows of test")
    text = run_report.describe(run, "validation")
    assert "this run        1.0000" in text
    with pytest.raises(UserError, match="validaton.*validation"):
        run_report.describe(run, "validaton")


def test_a_folder_that_is_no_finished_run_is_refused(tmp_path, run):
    with pytest.raises(ConfigError, match="not a run folder"):
        run_report.write_report(tmp_path)
    (run / "result.json").write_text(json.dumps({"tasks": {"a": {}, "b": {}}}))
    with pytest.raises(ConfigError, match="tasks a, b. .*run/a"):
        run_report.write_report(run)
    (run / "result.json").unlink()
    with pytest.raises(ConfigError, match="has not finished"):
        run_report.describe(run)


def test_classes_that_are_nowhere_are_named_and_left_out(tmp_path):
    head = heads.Classification(("ham", "junk", "spam", "news"))
    compared = {"target": [0, 0, 2], "predicted": [0, 3, 3]}
    rows = stored_runs.mails(2, 1)
    run = stored_runs.write(tmp_path, head, rows, compared)
    table = next(
        table
        for table in classes.classes_content(run_files.read_run(run)).tables
        if table.title == "Each class"
    )
    # Of no row there is no recall, of no prediction no precision.
    assert table.rows == [
        ["ham", 2, 1.0, 0.5, pytest.approx(2 / 3), "news (1)"],
        ["spam", 1, None, 0.0, 0.0, "news (1)"],
        ["news", 0, 0.0, None, 0.0, "-"],
    ]
    assert table.note == "Neither in the data nor predicted: junk."


def test_a_damaged_log_is_named(run):
    (run / "metrics.jsonl").write_text('{"step": 1, "lo')
    with pytest.raises(DataError, match=r"metrics\.jsonl is damaged.*Remove"):
        run_report.describe(run)


def test_what_a_run_of_several_tasks_logged_is_parted(tmp_path):
    run = stored_runs.write(
        tmp_path, stored_runs.HAM, ROWS, COMPARED, trained_with=["mail", "news"]
    )
    (tmp_path / "metrics.jsonl").write_text(
        '{"step": 2, "validation": {"mean": 1, "mail/f1": 2, "news/f1": 3}}\n'
    )
    (record,) = run_files.read_run(run).records
    assert record == {"step": 2, "validation": {"f1": 2}}


def test_the_title_names_the_folder_where_it_has_another_name(run):
    assert "<h1>mail: 20 rows of test (run)</h1>" in _page(run)
    other = run.rename(run.parent / "mail")
    assert "<h1>mail: 20 rows of test</h1>" in _page(other)


def test_a_report_is_not_written_through_links(tmp_path, run):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "holiday.png").write_text("mine")
    made = run / "report"
    made.symlink_to(outside)
    with pytest.raises(UserError, match="report is a link to"):
        run_report.write_report(run)
    made.unlink()
    made.mkdir()
    for name in ("report.html", "errors.csv", "confusion.png"):
        (made / name).symlink_to(outside / "holiday.png")
    run_report.write_report(run)
    assert not any(path.is_symlink() for path in made.iterdir())
    assert (outside / "holiday.png").read_text() == "mine"
