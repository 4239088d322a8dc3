"""Tests that editors see the names that exist."""

import ast
import importlib
from pathlib import Path

import jedi
import pytest

import tf_adapters
from tf_adapters import heads
from tf_adapters import methods

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "tf_adapters"


def _imported_for_editors():
    """Returns the names that `__init__.py` shows to type checkers."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    # `as` marks a name that is passed on: PEP 484.
    return {
        alias.asname: f"{node.module}.{alias.name}"
        for node in block.body
        for alias in node.names
    }


def test_editors_see_the_names_that_are_loaded_when_used():
    modules = {name: f"tf_adapters.{name}" for name in tf_adapters._MODULES}
    members = {
        name: f"{module}.{name}"
        for name, module in tf_adapters._MEMBERS.items()
    }
    assert _imported_for_editors() == modules | members


@pytest.mark.parametrize(
    ("package", "registry"),
    [(methods, methods.METHODS), (heads, heads.HEADS)],
    ids=["methods", "heads"],
)
def test_every_class_of_the_folder_is_listed(package, registry):
    folder = Path(package.__file__).parent
    for path in folder.glob("[a-z]*.py"):
        importlib.import_module(f"{package.__name__}.{path.stem}")
    classes = {
        cls.__name__
        for cls in registry.values()
        if cls.__module__.startswith(package.__name__)
    }
    assert classes and classes <= set(package.__all__)


@pytest.mark.parametrize(
    "package", [tf_adapters, methods, heads, tf_adapters.layers]
)
def test_completion_offers_the_public_names(package):
    name = package.__name__
    script = jedi.Script(f"import {name}\n{name}.", project=jedi.Project(ROOT))
    offered = {completion.name for completion in script.complete(2)}
    assert set(package.__all__) <= offered


def test_a_method_is_completed_with_its_arguments():
    code = "from tf_adapters import methods\nmethods.Houlsby("
    script = jedi.Script(code, project=jedi.Project(ROOT))
    (signature,) = script.get_signatures()
    assert "units" in [parameter.name for parameter in signature.params]
