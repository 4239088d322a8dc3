"""Tests that the notebooks in examples/ are small, have outputs, and run."""

import ast
import json
import os
from pathlib import Path
import re

import pytest

import tf_adapters

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
IDS = [path.stem for path in NOTEBOOKS]
API = (ROOT / "docs/api.md").read_text(encoding="utf-8")
MOST_BYTES = 200_000


def _code(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def _read(path):
    return _code(json.loads(path.read_text(encoding="utf-8")))


def _source(cell):
    return "".join(cell["source"])


def _kinds(outputs):
    """Returns the kinds of outputs without repetitions and standard error."""
    return sorted(
        {
            (output["output_type"], output.get("name", ""))
            for output in outputs
            if output.get("name") != "stderr"
        }
    )


def test_the_guides_link_to_every_notebook():
    pages = [*(ROOT / "docs").glob("*.md"), ROOT / "README.md"]
    text = "".join(path.read_text(encoding="utf-8") for path in pages)
    assert len(NOTEBOOKS) == 4
    assert [name for name in IDS if f"examples/{name}.ipynb" in text] == IDS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_it_is_small_and_was_run_from_top_to_bottom(path):
    assert path.stat().st_size < MOST_BYTES
    cells = _read(path)
    counts = [cell["execution_count"] for cell in cells]
    assert counts == list(range(1, len(counts) + 1))
    assert any(cell["outputs"] for cell in cells)
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"/(work|opt|home|root|tmp)/", text)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_it_uses_the_public_api_only(path):
    for cell in _read(path):
        for node in ast.walk(ast.parse(_source(cell))):
            if isinstance(node, ast.ImportFrom | ast.Import):
                assert all(map(_is_public, _imported(node))), _source(cell)
            if isinstance(node, ast.Attribute):
                assert not re.match(r"_[^_]", node.attr), _source(cell)


def _imported(node):
    """Returns the dotted names of this library that a statement imports."""
    module = getattr(node, "module", None)
    names = [alias.name for alias in node.names]
    names = [f"{module}.{name}" for name in names] if module else names
    return [name for name in names if name.split(".")[0] == "tf_adapters"]


def _is_public(name):
    offered = [f"tf_adapters.{one}" for one in tf_adapters.__all__]
    documented = re.findall(r"^::: (\S+)$", API, re.MULTILINE)
    return name in ["tf_adapters", *offered, *documented]


def test_a_private_import_would_be_found():
    (node,) = ast.parse("from tf_adapters.runs import experiment").body
    assert not all(map(_is_public, _imported(node)))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_it_runs_and_shows_what_it_is_kept_with(path):
    import nbclient
    import nbformat

    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    client = nbclient.NotebookClient(
        notebook,
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
    )
    kept = [_kinds(cell["outputs"]) for cell in _code(notebook)]
    # An error in a cell is raised here.
    client.execute(env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert [_kinds(cell["outputs"]) for cell in _code(notebook)] == kept
