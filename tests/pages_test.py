"""Runs the programs on the first pages of the docs, with a small encoder."""

from pathlib import Path
import re

import pytest

from tests.fixtures import huggingface_folders
from tf_adapters.encoders import load
from tf_adapters.text import loading
from tf_adapters.text import text_model

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[1]
LIBRARIES = ("SetFit", "PEFT", "adapters", "KerasHub")


def _blocks(page):
    """Returns the Python programs of a page."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def _coming_from():
    """Returns pairs of a program's library, from its first line, and it."""
    blocks = _blocks("docs/coming_from.md")
    return [(b.partition("\n")[0].removeprefix("# "), b) for b in blocks]


def _ours():
    return [block for name, block in _coming_from() if name == "tf_adapters"]


@pytest.fixture
def run(tmp_path, monkeypatch):
    """A function that runs programs one after the other in an empty folder.

    It returns their names, and the folders that the programs left.
    """
    folder = huggingface_folders.folder("bert")
    load_encoder = load.load_encoder
    for module in (text_model, loading):
        monkeypatch.setattr(
            module,
            "load_encoder",
            lambda name, *args, **options: load_encoder(
                folder, *args, **options
            ),
        )
    monkeypatch.chdir(tmp_path)

    def run(blocks):
        names = {}
        for block in blocks:
            exec(compile(block, "page", "exec"), names)
        return names, {path.name for path in tmp_path.iterdir()}

    return run


def test_each_library_stands_next_to_this_one():
    names = [name for name, _ in _coming_from()]
    assert names == ["tf_adapters"] + [
        name for library in LIBRARIES for name in (library, "tf_adapters")
    ]
    for name, block in _coming_from():
        compile(block, name, "exec")


def test_what_replaces_other_libraries_runs(run):
    names, folders = run(_ours())
    answer = names["model"].answer(["a fine film"])[0]
    assert answer["label"] in ("negative", "positive")
    saved = re.findall(r'save_adapter\(\s*"(\w+)"', "".join(_ours()))
    assert folders == set(saved) and len(saved) == 5


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_first_page_runs_and_is_short(page, run):
    (block,) = _blocks(page)
    assert len([line for line in block.splitlines() if line]) <= 10
    names, folders = run([block])
    assert folders == {"reviews"}
    assert len(names["model"].answer(["a fine film"])) == 1
