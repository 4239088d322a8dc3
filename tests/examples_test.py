"""Runs the examples in the public docstrings of docs/api.md."""

import doctest
import importlib
import inspect
from pathlib import Path
import re

import pytest

from tests.fixtures import huggingface_folders
import tf_adapters
from tf_adapters.encoders import keras_hub_families
from tf_adapters.encoders import load
from tf_adapters.encoders.keras_hub_families import FAMILIES
from tf_adapters.methods.registry import METHODS

pytestmark = pytest.mark.integration

PAGE = (Path(__file__).parents[1] / "docs/api.md").read_text(encoding="utf-8")
BEGINNING = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)[1]


def _documented():
    """Yields the full name of each object that the page documents."""
    for name in re.findall(r"^::: (\S+)$", PAGE, re.MULTILINE):
        module, _, member = name.rpartition(".")
        if not member[0].isupper() and name.endswith("baselines"):
            found = importlib.import_module(name)
            for one, value in vars(found).items():
                if inspect.isclass(value) and value.__module__ == name:
                    yield f"{name}.{one}", value
        else:
            yield name, getattr(importlib.import_module(module), member)


DOCUMENTED = dict(_documented())


@pytest.mark.parametrize("name", DOCUMENTED)
def test_example(name, tmp_path, monkeypatch):
    load_encoder = load.load_encoder
    folder = huggingface_folders.folder("bert")
    monkeypatch.setattr(load, "load_encoder", lambda _: load_encoder(folder))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(keras_hub_families, "FAMILIES", {**FAMILIES})
    for registered in ("top_norm",):
        METHODS.pop(registered, None)
    beginning = {}
    exec(BEGINNING, beginning)
    text = inspect.getdoc(DOCUMENTED[name])
    test = doctest.DocTestParser().get_doctest(text, beginning, name, None, 0)
    assert test.examples, f"{name} has no example"
    said = []
    doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    METHODS.pop("top_norm", None)
    assert not said, "".join(said)


def test_examples_have_the_heading_that_the_site_shows_as_code():
    # Under "Example:" it would show `>>>` as three quotations.
    package = Path(tf_adapters.__file__).parent
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^ *Example:$", text, re.MULTILINE), path


def test_all_that_importing_the_package_offers_is_documented():
    for name in tf_adapters.__all__:
        if name[0] == "_" or name in tf_adapters._MODULES:
            continue
        assert getattr(tf_adapters, name) in DOCUMENTED.values(), name
