"""The programs of docs/coming_from.md, those of this library, run in order."""

from pathlib import Path
import re

import pytest

from tests.fixtures import huggingface_folders
from tf_adapters.encoders import load
from tf_adapters.text import loading
from tf_adapters.text import text_model

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[1] / "docs/coming_from.md").read_text("utf-8")
LIBRARIES = ("SetFit", "PEFT", "adapters", "KerasHub")


def _blocks(page=PAGE):
    """Returns the library that a block's first line names, and its code."""
    found = re.findall(r"```python\n# (\w+)\n(.*?)```", page, re.DOTALL)
    assert len(found) == page.count("```python")
    return found


def test_each_library_stands_next_to_this_one():
    names = [name for name, _ in _blocks()]
    assert names == ["tf_adapters"] + [
        name for library in LIBRARIES for name in (library, "tf_adapters")
    ]
    for name, code in _blocks():
        compile(code, name, "exec")


def test_the_blocks_of_this_library_run(tmp_path, monkeypatch):
    folder = huggingface_folders.folder("bert")
    for module in (text_model, loading):
        monkeypatch.setattr(
            module,
            "load_encoder",
            lambda name, dtype=None: load.load_encoder(folder, dtype),
        )
    monkeypatch.chdir(tmp_path)
    names = {}
    for name, code in _blocks():
        if name == "tf_adapters":
            exec(compile(code, "docs/coming_from.md", "exec"), names)
    assert names["model"].answer(["a fine film"])[0]["label"] in (
        "negative",
        "positive",
    )
    saved = {path.name for path in tmp_path.iterdir()}
    assert saved == set(re.findall(r'save_adapter\(\s*"(\w+)"', _ours()))


def _ours():
    return "".join(code for name, code in _blocks() if name == "tf_adapters")
