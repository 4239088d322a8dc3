"""Reports and pictures in a study's folder with links in it."""

import pytest

from tf_adapters.papers.studies.report import report

pd = pytest.importorskip("pandas")


class _Picture:
    """An analysis whose picture is of nothing."""

    def draw(self, table):
        from matplotlib import figure

        return figure.Figure()


def test_files_of_a_study_take_the_place_of_links(tmp_path):
    from tf_adapters.papers.analysis.support import make

    mine = tmp_path / "mine.txt"
    mine.write_text("mine")
    folder = tmp_path / "study"
    folder.mkdir()
    names = ("table.md", "table.csv", "runs.csv", "gains.csv", "gains.png")
    for name in names:
        (folder / name).symlink_to(mine)
    report.write_report(report.Tables("text", [{"a": 1}], [], True), folder)
    make.write_table(pd.DataFrame({"a": [1]}), folder / "gains")
    make.write_picture(_Picture(), None, folder / "gains")
    assert mine.read_text() == "mine"
    assert not any((folder / name).is_symlink() for name in names)
    assert (folder / "gains.csv").read_text() == "a\n1\n"
