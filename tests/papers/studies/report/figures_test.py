"""Tests the pictures of a study: their runs, their names, and reuse."""

from pathlib import Path

import pandas as pd
import pytest

from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.papers.analysis.support import analysis
from tf_adapters.papers.analysis.support import make
from tf_adapters.papers.analysis.support import pictures
from tf_adapters.papers.analysis.support import study_runs
from tf_adapters.papers.studies import study as study_lib
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.report import cells as study_cells
from tf_adapters.papers.studies.report import figure_runs
from tf_adapters.papers.studies.report import figures
from tf_adapters.papers.studies.report import files
from tf_adapters.papers.studies.report.run_rows import run_rows


class _Fake(analysis.Analysis):
    """Says which folders it was given.

    And draws nothing of them.
    """

    def __init__(self, reads):
        self.reads = reads
        self.drawn = []
        self.options = []

    def add_flags(self, parser):
        parser.add_argument("--over", default="method")
        parser.add_argument("--tokens", type=int, default=5)
        parser.add_argument("--quick", action="store_true")
        parser.add_argument("--slow", action="store_true")

    def table(self, options):
        self.options.append(options)
        return pd.DataFrame([{"run": f, "value": 1.5} for f in options.folders])

    def draw(self, table):
        self.drawn.append(list(table.run))
        return pictures.make_figure()[0]


@pytest.fixture
def fakes(monkeypatch):
    make.load_all()
    fakes = {name: _Fake(name) for name in ("model_dir", "model_dirs")}
    fakes["study_dir"] = _Study("study_dir")
    for name, fake in fakes.items():
        monkeypatch.setitem(analysis.ANALYSES, name, fake)
    return fakes


class _Study(_Fake):
    """Reads a study's runs."""

    def table(self, options):
        self.options.append(options)
        (folder,) = options.folders
        runs = study_runs.load_study_runs(folder, ("task", "method"))
        paths = [
            study_runs.run_folder(folder, row) for _, row in runs.iterrows()
        ]
        assert all((path / "result.json").exists() for path in paths)
        assert (Path(folder) / "table.csv").exists()
        return runs[["run", "task", "validation"]]


def _finished(folder, declared, lacking=(), **changes):
    """Returns a study, its finished runs and its folder."""
    changes = {"grid": studies.STUDY["grid"], "small": None, **changes}
    study, runs = studies.plan(folder, figures=declared, **changes)
    study_dir = folder / "runs" / "demo"
    results = {run.id: None for run in runs}
    for index, run in enumerate(runs):
        if index not in lacking:
            path = study_dir / run.id
            path.mkdir(parents=True)
            resolve.save_config(run.config, path / "config.yaml")
            results[run.id] = studies.finished(**studies.score(run.config))
            (path / "result.json").write_text(str(index))
    errors = dict.fromkeys(results, "")
    tables = study_cells.make_tables(study, runs, results, errors)
    files.write_tables(tables, study_dir)
    return study, runs, study_dir


def test_an_analysis_of_several_runs_gets_those_that_match(tmp_path, fakes):
    declared = {"analysis": "model_dirs", "name": "figure2"}
    declared["runs"] = {"task": "cola", "seed": [0, 2]}
    declared["options"] = {"tokens": 7, "over": ["a", "b"], "quick": True}
    declared["options"]["slow"] = False
    study, runs, folder = _finished(tmp_path, [declared])
    (made,) = figures.make_figures(study, runs, folder)
    (options,) = fakes["model_dirs"].options
    assert (options.tokens, options.over) == (7, "a,b")
    assert (options.quick, options.slow) == (True, False)
    wanted = [
        run
        for run in runs
        if run.config.task == "cola" and run.config.seed in (0, 2)
    ]
    assert options.folders == [str(folder / run.id) for run in wanted]
    assert made.png == folder / "figures" / "figure2.png"
    assert made.png.stat().st_size > 1000
    table = pd.read_csv(made.csv)
    assert list(table.run) == [f"{run.id}" for run in wanted]
    assert list(table.method) == ["houlsby"] * 2 + ["head_only"] * 2
    assert list(table.seed) == [0, 2, 0, 2]
    # The picture names runs by their differences.
    assert fakes["model_dirs"].drawn == [
        [
            "houlsby, seed 0",
            "houlsby, seed 2",
            "head_only, seed 0",
            "head_only, seed 2",
        ]
    ]
    assert made.caption == "Says which folders it was given. (cola)"
    assert (made.figure, made.analysis) == ("figure2", "model_dirs")


def test_an_analysis_of_one_run_makes_a_picture_of_each(tmp_path, fakes):
    declared = {"analysis": "model_dir", "name": "figure6"}
    declared["runs"] = {"method": "houlsby", "seed": 0}
    study, runs, folder = _finished(tmp_path, [declared])
    made = figures.make_figures(study, runs, folder)
    assert [one.name for one in made] == ["figure6_sst2", "figure6_cola"]
    assert {one.figure for one in made} == {"figure6"}
    assert pd.read_csv(made[1].csv).task.tolist() == ["cola"]


def test_labels_that_differ_in_other_letters_have_files_of_their_own(
    tmp_path, fakes, monkeypatch
):
    declared = {"analysis": "model_dir", "runs": {"task": "cola", "seed": [0]}}
    study, runs, folder = _finished(tmp_path, [declared])
    names = ["label ä", "label ö"]
    monkeypatch.setattr(figure_runs, "labels", lambda some: names[: len(some)])
    first, second = figures.make_figures(study, runs, folder)
    assert first.png != second.png and first.csv != second.csv


def test_pictures_show_the_runs_that_are_selected(tmp_path, fakes):
    declared = [{"analysis": "model_dirs"}, {"analysis": "study_dir"}]
    rates = {"train.learning_rate": [1e-3, 1e-4]}
    grid = {"task": ["sst2"], "method": ["houlsby", "head_only"]}
    study, runs, folder = _finished(
        tmp_path,
        declared,
        grid={**grid, "seed": [0, 1]},
        where=None,
        select_over=rates,
    )
    # A lower rate is better for one method, a higher one for the other.
    rows = []
    for run in runs:
        is_low = run.point["train.learning_rate"] == 1e-4
        value = 0.9 if is_low == (run.point["method"] == "houlsby") else 0.5
        rows += run_rows(run, studies.finished(validation={"accuracy": value}))
    made = figures.make_figures(study, runs, folder, rows)
    wanted = {row["run"] for row in rows if row["validation"] == 0.9}
    for one in made:
        assert set(pd.read_csv(one.csv).run) == wanted, one.name


def test_names_do_not_depend_on_what_is_finished(tmp_path, fakes, capsys):
    declared = {"analysis": "model_dir", "name": "figure6"}
    declared["runs"] = {"method": "houlsby", "seed": 0}
    study, runs, folder = _finished(tmp_path, [declared], lacking=[0])
    (made,) = figures.make_figures(study, runs, folder)
    assert made.name == "figure6_cola"
    assert "No figure `figure6_sst2`: none of its runs is finished." in (
        capsys.readouterr().out
    )


def test_an_analysis_of_a_study_reads_its_runs(tmp_path, fakes):
    declared = [
        {"analysis": "study_dir", "options": {"over": "seed"}},
        {"analysis": "study_dir", "name": "of_cola", "runs": {"task": "cola"}},
    ]
    study, runs, folder = _finished(tmp_path, declared)
    whole, part = figures.make_figures(study, runs, folder)
    assert fakes["study_dir"].options[0].folders == [str(folder)]
    assert len(pd.read_csv(whole.csv)) == 12
    assert set(pd.read_csv(part.csv).task) == {"cola"}
    assert len(pd.read_csv(part.csv)) == 6
    # It is made again if the report shows something else.
    calls = fakes["study_dir"].options
    for _ in range(2):
        figures.make_figures(study, runs, folder)
        assert len(calls) == 2
    table = folder / "table.csv"
    table.write_text(table.read_text().replace("validation", "test"))
    figures.make_figures(study, runs, folder)
    assert len(calls) == 4


def test_what_is_made_is_kept_until_a_run_or_a_flag_changes(tmp_path, fakes):
    declared = {"analysis": "model_dirs", "runs": {"seed": 0}}
    study, runs, folder = _finished(tmp_path, [declared])
    calls = fakes["model_dirs"].options
    for _ in range(2):
        (made,) = figures.make_figures(study, runs, folder)
        assert len(calls) == 1
    (folder / runs[0].id / "result.json").write_text("another")
    figures.make_figures(study, runs, folder)
    assert len(calls) == 2
    study, runs = studies.plan(
        tmp_path, figures=[{**declared, "options": {"tokens": 9}}]
    )
    figures.make_figures(study, runs, folder)
    assert len(calls) == 3
    made.png.unlink()
    figures.make_figures(study, runs, folder)
    assert len(calls) == 4 and made.png.exists()


def test_one_that_fails_is_said_and_the_others_are_made(
    tmp_path, fakes, capsys, monkeypatch
):
    def refuse(options):
        raise UserError("it has no gates.")

    monkeypatch.setattr(fakes["model_dirs"], "table", refuse)
    declared = [{"analysis": "model_dirs"}, {"analysis": "study_dir"}]
    study, runs, folder = _finished(tmp_path, declared)
    (made,) = figures.make_figures(study, runs, folder)
    assert made.name == "study_dir"
    assert "No figure `model_dirs`: it has no gates." in capsys.readouterr().out


def test_tasks_that_trained_together_are_runs_of_their_own(tmp_path, fakes):
    where = {"when": {"method": "multitask"}}
    where["set"] = {"method.tasks": ["sst2", "cola"]}
    changes = {"grid": {"method": ["multitask"]}, "where": [where]}
    changes["base"] = {"encoder": "minilm"}
    declared = {"analysis": "model_dirs", "runs": {"task": "cola"}}
    study, (run,) = studies.plan(
        tmp_path, figures=[declared], small=None, **changes
    )
    folder = tmp_path / "runs" / "demo"
    for name in (".", "cola", "sst2"):
        (folder / run.id / name).mkdir(parents=True, exist_ok=True)
        path = folder / run.id / name
        resolve.save_config(run.config, path / "config.yaml")
        (path / "result.json").write_text("{}")
    (made,) = figures.make_figures(study, [run], folder)
    table = pd.read_csv(made.csv)
    assert table.run.tolist() == [f"{run.id}/cola"]
    assert table.task.tolist() == ["cola"]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (
            {"analysis": "similarty"},
            "Figure `similarty`: Unknown analysis `similarty`. Did you mean "
            "`similarity`",
        ),
        (
            {"analysis": "model_dirs", "options": {"token": "many"}},
            "Figure `model_dirs`: .*invalid int value: 'many'",
        ),
        (
            {"analysis": "model_dirs", "options": {"blocks": 3}},
            "Figure `model_dirs`: Unrecognized arguments: --blocks=3",
        ),
        ({"analysis": "gains"}, "Figure `gains`: .*required: --baseline"),
        (
            {"analysis": "model_dirs", "options": {"help": True}},
            "Figure `model_dirs`: Unrecognized arguments: --help",
        ),
    ],
)
def test_mistakes_are_said_before_a_run_starts(
    tmp_path, fakes, declared, message
):
    study, _ = studies.plan(tmp_path, figures=[declared])
    with pytest.raises(ConfigError, match=message):
        figures.check_figures(study)


def test_the_command_makes_the_pictures(tmp_path, fakes, capsys):
    path = studies.write(
        tmp_path, figures=[{"analysis": "study_dir", "name": "figure4"}]
    )
    options = studies.options(path)
    layer = {"data": {}, "train": {}}
    runner = studies.FakeRunner(studies.score)
    assert study_lib.run_studies(options, layer, runner) == 0
    picture = tmp_path / "runs" / "demo" / "figures" / "figure4.png"
    assert picture.exists()
    assert f"{picture}: Reads a study's runs." in capsys.readouterr().out


def test_a_stop_while_pictures_are_made_leaves_a_whole_report(
    tmp_path, fakes, capsys, monkeypatch
):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(figures, "_make", stop)
    claim = {"says": "It does.", "of": "figure4", "value": "score"}
    claim |= {"higher": {"seed": 0}, "than": {"seed": 1}}
    declared = [{"analysis": "study_dir", "name": "figure4"}]
    path = studies.write(tmp_path, figures=declared, claims=[claim])
    runner = studies.FakeRunner(studies.score)
    with pytest.raises(KeyboardInterrupt):
        study_lib.run_studies(
            studies.options(path), {"data": {}, "train": {}}, runner
        )
    assert "--report makes the missing" in capsys.readouterr().out
    folder = tmp_path / "runs" / "demo"
    for name in ("table.md", "claims.csv", "report.html"):
        assert "`figure4` was not made" in (folder / name).read_text(), name


def test_official_figures_have_their_analyses_and_flags():
    for path in sorted(declaration.STUDIES.glob("*.yaml")):
        figures.check_figures(declaration.read_study(path)[0])


def test_encoders_of_the_same_name_have_labels_of_their_own():
    sources = [
        figure_runs.CurveSource(None, None, {"encoder": name}, {})
        for name in ("old/bert", "new/bert")
    ]
    found = figure_runs.labels(sources)
    assert found == ["encoder old/bert", "encoder new/bert"]
