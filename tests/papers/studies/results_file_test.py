"""Tests the file with the results of finished runs."""

import json
import os
import pathlib
import shutil

import pytest

from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.papers.studies import study as study_lib
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan as study_plan
from tf_adapters.papers.studies.results_file import ResultsFile

STORED = pathlib.Path(__file__).parents[3] / "docs" / "results"

LAYER = {"data": {"data_dir": "/some/data"}, "train": {}}
ONE_SEED = {**studies.STUDY["grid"], "seed": [0]}


def _run(path, file, layer=LAYER, **changes):
    """Runs the study; returns the ids of the runs that were trained."""
    runner = studies.FakeRunner(_score)
    options = studies.options(path, results_file=str(file), **changes)
    study_lib.run_studies(options, layer, runner)
    return runner.seen


def _score(config):
    return {**studies.score(config), "encoder": config.encoder}


def _table(folder):
    return (folder / "runs" / "demo" / "table.csv").read_text()


def test_stored_runs_are_not_trained_again(tmp_path):
    path, file = studies.write(tmp_path), tmp_path / "new" / "demo.jsonl"
    assert len(_run(path, file)) == 12
    table, text = _table(tmp_path), file.read_text()
    shutil.rmtree(tmp_path / "runs")
    # On another machine: other data, and the report alone.
    assert _run(path, file, {"data": {}, "train": {}}, report=True) == []
    assert _table(tmp_path) == table
    assert _run(path, file) == []
    assert file.read_text() == text


def test_a_row_has_the_settings_and_no_path_of_the_machine(tmp_path):
    path, file = studies.write(tmp_path), tmp_path / "demo.jsonl"
    ids = _run(path, file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["run"] for row in rows] == ids
    assert rows[0]["result"] == studies.finished(
        validation={"accuracy": pytest.approx(0.8)}, encoder="minilm"
    )
    assert rows[0]["settings"]["method"]["units"] == 8
    assert rows[0]["settings"]["train"]["batch_size"] == 16
    assert '"/' not in file.read_text()


def test_a_run_without_an_encoder_is_stored(tmp_path):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    runner = studies.FakeRunner(lambda c: {**_score(c), "encoder": None})
    options = studies.options(path, results_file=str(file))
    study_lib.run_studies(options, LAYER, runner)
    shutil.rmtree(tmp_path / "runs")
    assert _run(path, file) == []


def test_the_encoder_that_members_trained_has_the_name_of_its_start(tmp_path):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    trained = str(tmp_path / "runs" / "multitask-seed0" / "encoder")
    runner = studies.FakeRunner(lambda c: {**_score(c), "encoder": trained})
    options = studies.options(path, results_file=str(file))
    study_lib.run_studies(options, LAYER, runner)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert {row["result"]["encoder"] for row in rows} == {"minilm"}


def test_an_encoder_of_this_machine_is_not_stored(tmp_path, capsys):
    (tmp_path / "encoder").mkdir()
    base = {"encoder": str(tmp_path / "encoder")}
    path = studies.write(tmp_path, base=base, grid=ONE_SEED)
    _run(path, tmp_path / "demo.jsonl")
    assert not (tmp_path / "demo.jsonl").exists()
    said = "`settings.encoder` is a path of this machine."
    assert said in capsys.readouterr().out


def test_an_encoder_in_the_current_folder_has_a_relative_path(
    tmp_path, monkeypatch
):
    for place in ("here", "there"):
        (tmp_path / place / "encoders" / "own").mkdir(parents=True)
    base = {"encoder": "encoders/own"}
    path = studies.write(tmp_path, base=base, grid=ONE_SEED)
    file = tmp_path / "demo.jsonl"
    monkeypatch.chdir(tmp_path / "here")
    ids = _run(path, file)
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [row["settings"]["encoder"] for row in rows] == ["encoders/own"] * 4
    assert [row["run"] for row in rows] == ids
    for place in ("here", "there", "."):
        monkeypatch.chdir(tmp_path / place)
        shutil.rmtree(tmp_path / "runs")
        assert _run(path, file) == []


def test_a_full_disk_leaves_no_part_of_a_row(tmp_path, monkeypatch):
    path, file = studies.write(tmp_path), tmp_path / "demo.jsonl"
    _run(path, file)
    rows = file.read_text()
    grid = {**studies.STUDY["grid"], "seed": [9]}
    studies.write(tmp_path, grid=grid)
    write = os.write
    monkeypatch.setattr(os, "write", lambda no, data: write(no, data[:95]))
    with pytest.raises(OSError, match="No space left"):
        _run(path, file)
    assert file.read_text() == rows


def test_a_run_without_work_gets_the_stored_result(tmp_path):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    failed, started, *_ = _run(path, file)
    shutil.rmtree(tmp_path / "runs")
    (tmp_path / "runs/demo" / failed).mkdir(parents=True)
    (tmp_path / "runs/demo" / failed / "error.txt").write_text("no memory")
    (tmp_path / "runs/demo" / started).mkdir()
    (tmp_path / "runs/demo" / started / "metrics.jsonl").write_text("{}\n")
    assert _run(path, file) == [started]
    assert not (tmp_path / "runs/demo" / failed / "error.txt").exists()


def test_a_neighbor_with_another_result_counts_and_is_named(tmp_path, capsys):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    first, *_ = _run(path, file)
    (tmp_path / "runs/demo").rename(tmp_path / "runs/other")
    result = tmp_path / "runs/other" / first / "result.json"
    values = json.loads(result.read_text())
    # Another time is no other result.
    result.write_text(json.dumps({**values, "seconds": 9.0}))
    assert _run(path, file) == []
    assert "differ" not in capsys.readouterr().out
    values["validation"]["accuracy"] = 0.1
    result.write_text(json.dumps(values))
    assert _run(path, file) == []
    said = capsys.readouterr().out
    assert "results differ" in said and "empty --model_dir" in said
    assert f"1, such as {result.parent}." in said


def test_runs_of_a_table_are_not_stored(tmp_path, capsys):
    """Its path says nothing about its content."""
    base = {"data": {"file": str(tmp_path / "t.csv")}}
    rows = "\n".join(f"text {i},{i % 2}" for i in range(20))
    (tmp_path / "t.csv").write_text("text,label\n" + rows)
    grid = {"task": ["t"], "method": ["houlsby"], "seed": [0]}
    path = studies.write(tmp_path, base=base, grid=grid, where=None, small=None)
    file = tmp_path / "demo.jsonl"
    layer = {"data": {}, "train": {}}
    assert len(_run(path, file, layer)) == 1 and not file.exists()
    assert "`settings.data.file` is a path" in capsys.readouterr().out


def test_a_result_that_json_cannot_hold_is_not_stored(tmp_path, capsys):
    def score(config):
        metrics = {"accuracy": 0.5, "matthews": 0.5, "loss": float("nan")}
        return {"validation": metrics}

    path, file = studies.write(tmp_path), tmp_path / "demo.jsonl"
    options = studies.options(path, results_file=str(file))
    study_lib.run_studies(options, LAYER, studies.FakeRunner(score))
    assert not file.exists()
    assert "has a number that is not finite" in capsys.readouterr().out


def test_other_settings_are_trained(tmp_path):
    path, file = studies.write(tmp_path), tmp_path / "demo.jsonl"
    _run(path, file)
    shutil.rmtree(tmp_path / "runs")
    grid = {**studies.STUDY["grid"], "seed": [2, 3]}
    studies.write(tmp_path, grid=grid)
    seen = _run(path, file)
    assert len(seen) == 4 and all("-seed3-" in name for name in seen)
    changed = {"data": {}, "train": {"clip_norm": 3.0}}
    assert len(_run(path, file, changed)) == 8
    assert len(file.read_text().splitlines()) == 12 + 4 + 8


def test_runs_finished_before_are_added(tmp_path):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    runner = studies.FakeRunner(studies.score)
    study_lib.run_studies(studies.options(path), LAYER, runner)
    assert _run(path, file, report=True) == []
    assert len(file.read_text().splitlines()) == 4


def test_two_processes_add_a_run_only_once(tmp_path):
    _, runs = studies.plan(tmp_path, grid=ONE_SEED)
    first, second = (ResultsFile(tmp_path / "demo.jsonl") for _ in range(2))
    for run in runs:
        first.add(run, studies.finished(validation={"accuracy": 0.5}))
        second.add(run, studies.finished(validation={"accuracy": 0.6}))
    rows = (tmp_path / "demo.jsonl").read_text().splitlines()
    assert [json.loads(row)["run"] for row in rows] == [run.id for run in runs]
    assert "0.6" not in "".join(rows)


def _damaged(lines):
    row = json.loads(lines[1])
    other = {**row, "result": {**row["result"], "seconds": 3.0}}
    return {
        "cut off": (lines[1][:100], "not JSON"),
        "a key": (json.dumps({**row, "more": 1}), "must be a mapping with"),
        "a number": (json.dumps({**row, "result": {"seconds": "2"}}), "type"),
        "twice": (json.dumps(other), "remove one of the two lines"),
    }


@pytest.mark.parametrize("kind", ["cut off", "a key", "a number", "twice"])
def test_a_damaged_row_is_an_error(tmp_path, kind):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    _run(path, file)
    lines = file.read_text().splitlines()
    damaged, why = _damaged(lines)[kind]
    file.write_text("\n".join([*lines[:4], damaged, *lines[4:]]))
    with pytest.raises(ConfigError, match=f"damaged in line 5: .*{why}"):
        _run(path, file)


def test_a_last_line_without_an_end_is_completed(tmp_path):
    path, file = studies.write(tmp_path, grid=ONE_SEED), tmp_path / "demo.jsonl"
    _run(path, file)
    rows = file.read_text().splitlines()
    file.write_text("\n".join(rows[:-1]))
    _run(path, file, report=True)
    assert file.read_text().splitlines() == rows


@pytest.mark.parametrize(
    "path", sorted(STORED.glob("*.jsonl")), ids=lambda path: path.stem
)
def test_published_results_are_those_of_the_studys_runs(tmp_path, path):
    """A change to a study or a preset must not leave its results behind."""
    name, form = path.stem, None
    for block in ("two_cores", "one_gpu"):
        if name.endswith(f"_{block}"):
            name, form = name.removesuffix(f"_{block}"), block
    _, runs = study_plan.load_study(declaration.find_study(name), form)
    # Not in `tmp_path`: its neighbors hold the runs of other studies.
    folder = tmp_path / name
    folder.mkdir()
    ResultsFile(path).restore(runs, folder)
    ids = {json.loads(line)["run"] for line in path.read_text().splitlines()}
    assert {one.name for one in folder.iterdir()} == ids
