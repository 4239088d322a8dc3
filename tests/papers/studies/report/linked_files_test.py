"""Tests reports and pictures in a study's folder with links."""

import pandas as pd

from tests.fixtures import studies
from tf_adapters.papers.studies.report import cells
from tf_adapters.papers.studies.report import files

_SCORE = {"validation": {"accuracy": 0.5, "matthews": 0.5}}


class _Picture:
    """An analysis with an empty picture."""

    def draw(self, table):
        from matplotlib import figure

        return figure.Figure()


def test_files_of_a_study_take_the_place_of_links(tmp_path):
    from tf_adapters.papers.analysis.support import make

    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    folder = tmp_path / "study"
    folder.mkdir()
    names = ("table.csv", "runs.csv", "table.md", "table.tex", "report.html")
    names += ("claims.csv", "gains.csv", "gains.png")
    for name in names:
        (folder / name).symlink_to(mine)
    study, runs = studies.plan(tmp_path)
    results = {run.id: studies.finished(**_SCORE) for run in runs}
    tables = cells.make_tables(study, runs, results, dict.fromkeys(results, ""))
    files.write_tables(tables, folder)
    files.write_study_report("demo", "command", study, runs, tables, folder)
    make.write_table_csv(pd.DataFrame({"a": [1]}), folder / "gains")
    make.write_picture(_Picture(), None, folder / "gains")
    assert mine.read_text() == "mine"
    assert not any((folder / name).is_symlink() for name in names)
    assert (folder / "gains.csv").read_text() == "a\n1\n"
