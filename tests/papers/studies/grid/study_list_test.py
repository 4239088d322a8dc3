"""Tests the table of --list=studies."""

import subprocess
import sys

from tests import commands
from tests.fixtures import studies
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import study_list


def test_each_form_of_each_study_has_a_row(tmp_path):
    lacking = "The labels of GLUE's test sets are secret."
    paths = [
        studies.write(
            tmp_path,
            "table2",
            paper="he2021",
            covers=["table 2", "figure 5"],
            missing_data=[lacking],
            two_cores={"task": "cola"},
        ),
        studies.write(
            tmp_path,
            "b",
            grid={"task": ["newsgroups"], "method": ["houlsby"]},
            where=None,
            small=None,
        ),
    ]
    text = study_list.list_studies(paths)
    lines = [line.split("  ") for line in text.split("\n\n")[0].split("\n")]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[0][-1] == "A100 hours (estimate)"
    assert cells[1][:4] == ["b", "method by task", "full", "1"]
    assert cells[1][4:] == ["?", "?"]
    assert cells[2][:4] == [
        "table2",
        "He et al. 2021: table 2, figure 5",
        "full",
        "12",
    ]
    assert [row[:2] for row in cells[3:]] == [
        ["--small", "4"],
        ["--two_cores", "6"],
    ]
    assert text.endswith(f"table2:\n- {lacking}")
    assert "are estimated" in text


def test_the_command_lists_every_official_study(capsys):
    assert commands.run(None, list="studies") == 0
    printed = capsys.readouterr().out
    for path in declaration.STUDIES.glob("*.yaml"):
        assert f"\n{path.stem} " in printed


# Packages of the extra `studies`, as if they were not installed.
WITHOUT_EXTRA = """
import sys
import types
sys.modules |= dict.fromkeys(("jinja2", "matplotlib", "pandas", "tabulate"))
from tf_adapters.cli import study
from tf_adapters.common.errors import ConfigError
from tf_adapters.papers.studies.grid import declaration
from tf_adapters.papers.studies.grid import plan
assert "he2021_figure8 " in study.table_of_studies()
loaded, runs = plan.load_study(declaration.find_study("he2021_figure8"))
assert loaded.figures and runs
try:
    options = types.SimpleNamespace(executor="local", report=False)
    study.run_study_of_options(options, {})
except ConfigError as error:
    print(error)
"""


def test_without_the_extra_studies_are_listed_and_planned():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("A study needs the package `")
    assert "pip install 'tf_adapters[studies]'" in done.stdout
