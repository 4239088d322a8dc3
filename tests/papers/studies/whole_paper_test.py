"""Tests runs of all studies of a paper: choice, forms and summary."""

import pytest

from tests.fixtures import studies
from tf_adapters.common.errors import ConfigError
from tf_adapters.papers.studies import study as study_lib
from tf_adapters.papers.studies.grid import declaration


@pytest.fixture
def official(tmp_path, monkeypatch):
    """Replaces the official studies by a folder of others."""
    folder = tmp_path / "official"
    folder.mkdir()
    monkeypatch.setattr(declaration, "STUDIES", folder)
    grid = {"task": ["sst2"], "method": ["houlsby"], "seed": [0, 1]}
    plain = {"grid": grid, "where": None, "small": {"seed": [1]}}
    studies.write(folder, "b_table", paper="he2021", **plain)
    studies.write(
        folder, "a_figure", paper="he2021", **{**plain, "small": None}
    )
    studies.write(folder, "other", paper="han2021", **plain)
    studies.write(folder, "no_paper", **plain)
    return folder


def _run(folder, score=studies.score, **changes):
    runner = studies.FakeRunner(score)
    options = studies.options(folder / "x", study="paper:he2021", **changes)
    status = study_lib.run_studies(options, {"data": {}, "train": {}}, runner)
    return status, runner.seen


def test_its_studies_run_one_after_the_other(official, capsys):
    status, seen = _run(official)
    # The second study has the runs of the first one.
    assert status == 0 and len(seen) == 2
    out = capsys.readouterr().out
    assert out.endswith("\na_figure: done\nb_table: done\n")
    assert out.index("== Study a_figure ==") < out.index("== Study b_table ==")
    assert "`tf-adapters --study=a_figure --model_dir=" in out
    runs = official / "runs"
    assert {path.name for path in runs.iterdir()} == {"a_figure", "b_table"}


def test_a_form_that_a_study_lacks_is_passed_over(official, capsys):
    status, seen = _run(official, small=True)
    assert status == 0 and len(seen) == 1
    out = capsys.readouterr().out
    assert "a_figure: skipped: it has no block `small`\nb_table: done" in out
    assert (official / "runs" / "b_table_small" / "table.md").exists()


def test_one_that_fails_does_not_end_the_others(official, capsys):
    path = official / "a_figure.yaml"
    path.write_text(path.read_text().replace("houlsby", "hoolsby"))
    status, seen = _run(official)
    assert status == 1 and len(seen) == 2
    out = capsys.readouterr().out
    assert "a_figure: FAILED: Study" in out and "Did you mean" in out
    assert out.endswith("b_table: done\n")


def test_a_study_with_a_failed_run_has_failed(official, capsys):
    def score(config):
        if config.seed == 1:
            return ValueError("NaN")
        return studies.score(config)

    assert _run(official, score)[0] == 1
    out = capsys.readouterr().out
    assert "a_figure: FAILED, see above\nb_table: FAILED, see above" in out


def test_an_unknown_paper_is_said(official):
    options = studies.options(official / "x", study="paper:he2012")
    with pytest.raises(ConfigError, match="Did you mean `he2021`"):
        study_lib.run_studies(options, {"data": {}, "train": {}})
