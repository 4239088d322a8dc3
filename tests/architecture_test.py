"""Checks the rules of the design, such as the direction of imports."""

import ast
import os
from pathlib import Path
import re
import subprocess
import sys

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tf_adapters"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# The folders of the package by floor, the lowest first. Imports go down only.
FLOORS = [
    {"common"},
    {"layers"},
    {"encoders", "methods", "tasks"},
    {"config", "data"},
    {"heads", "interop", "training"},
    {"models"},
    {"merging"},
    {"runs"},
    {"export", "report"},
    {"explain"},
    {"text"},
    {"launch"},
    {"papers", "serving"},
    {"cli"},
]
FLOOR = {name: i for i, names in enumerate(FLOORS) for name in names}


def _imports(path):
    """Yields the dotted names of modules and symbols that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_folder_has_a_floor():
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders == set(FLOOR)


def test_the_packages_root_is_empty_but_for_its_doors():
    names = {path.name for path in PACKAGE.glob("*.py")}
    assert names == {"__init__.py", "__main__.py"}


def _upward(folder, imported):
    """Returns whether a file imports from its own or a higher floor."""
    parts = imported.split(".")
    if parts[0] != "tf_adapters" or len(parts) < 2 or parts[1] == folder:
        return False
    return FLOOR.get(parts[1], -1) >= FLOOR[folder]


def test_imports_go_down_only():
    upward = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        if path.parent != PACKAGE
        for name in _imports(path)
        if _upward(path.relative_to(PACKAGE).parts[0], name)
    ]
    assert not upward


def test_an_upward_import_would_be_found():
    assert _upward("models", "tf_adapters.runs.experiment")
    assert _upward("heads", "tf_adapters.training.loop")
    assert not _upward("models", "tf_adapters.models.saving")
    assert not _upward("models", "tf_adapters.heads.span")
    assert not _upward("models", "keras.layers")


def test_only_two_subcommands_import_the_wing_of_the_papers():
    importers = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        if PACKAGE / "papers" not in path.parents
        for name in _imports(path)
        if name.startswith("tf_adapters.papers")
    }
    assert importers == {"cli/analyse.py", "cli/study.py"}


# Builds settings as commands do; prints the imported modules of the papers.
WING_IMPORTED = """
import sys
from tf_adapters import methods
from tf_adapters.cli import flags, main
from tf_adapters.config import resolve

for name in sys.argv[1:]:
    config = resolve.resolve_config({"task": "sst2", "method": name})
    assert methods.name_of(config.method) == name
print(*(name for name in sys.modules if name.startswith("tf_adapters.papers")))
"""


@pytest.mark.parametrize(
    ("method", "imported"),
    [("houlsby", ""), ("no_bert", "tf_adapters.papers.baselines.no_bert")],
)
def test_the_wing_is_imported_for_those_who_name_it(method, imported):
    done = subprocess.run(
        [sys.executable, "-c", WING_IMPORTED, method],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split()[-1:] == imported.split()


# Runs without TensorFlow and prints a model's answers.
WITHOUT_TENSORFLOW = """
import importlib, pkgutil, sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0].startswith("tensorflow"):
            raise ImportError(f"{name} is refused")

sys.meta_path.insert(0, Refuse())
for folder in (
    "common", "layers", "methods", "heads", "models", "merging"
):
    package = importlib.import_module(f"tf_adapters.{folder}")
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"tf_adapters.{folder}.{module.name}")

import tf_adapters
from tests import tiny

encoder = tiny.encoder()
head = tf_adapters.heads.Classification(labels=("a", "b"))
model = tf_adapters.adapt(encoder, tf_adapters.methods.Houlsby(units=4), head)
print(model(tiny.batch(encoder)).shape)
assert not any(name.startswith("tensorflow") for name in sys.modules)
"""


def test_models_are_made_and_called_without_tensorflow():
    pytest.importorskip("jax")
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TENSORFLOW],
        cwd=ROOT,
        env={**os.environ, "KERAS_BACKEND": "jax"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "(3, 2)"


def test_only_the_commands_flags_need_absl():
    readers = [
        path.name
        for path in SOURCES
        if any(name.split(".")[0] == "absl" for name in _imports(path))
    ]
    assert readers == ["flags.py"]


def test_the_trainer_knows_no_method_by_name():
    text = (PACKAGE / "training" / "trainer.py").read_text().lower()
    text += (PACKAGE / "training" / "train_step.py").read_text().lower()
    text += (PACKAGE / "training" / "loop.py").read_text().lower()
    names = ("houlsby", "pfeiffer", "adapter_bias", "bitfit", "head_only")
    for name in (*names, "lora", "mixout", "diff_pruning"):
        assert name not in text


def test_only_runs_writes_the_files_of_a_run():
    for path in SOURCES:
        if path.name in ("run_folder.py", "local_runner.py"):
            continue
        text = path.read_text(encoding="utf-8")
        assert not re.search(
            r'"(result\.json|metrics\.jsonl)"\)?\.(write|open)', text
        ), path


def test_private_attributes_of_keras_hub_are_read_in_one_place():
    private = re.compile(
        r"\._(self_attention|feedforward|query_dense|output_dense)"
    )
    readers = [
        path.name
        for path in SOURCES
        if private.search(path.read_text(encoding="utf-8"))
    ]
    # MPNet's block is a subclass of KerasHub's.
    assert set(readers) <= {
        "block_layers.py",
        "huggingface_weights.py",
        "mpnet_layers.py",
    }


def test_every_test_file_is_collected():
    files = {
        path.name
        for path in (ROOT / "tests").rglob("*.py")
        if re.search(r"^def test_", path.read_text(encoding="utf-8"), re.M)
    }
    assert all(name.endswith("_test.py") for name in files)


def test_no_path_of_a_machine():
    pattern = re.compile(r"/(work|opt|home|root)/[A-Za-z._-]")
    for folder in ("tf_adapters", "tests", "benchmarks", "docs", "examples"):
        for path in (ROOT / folder).rglob("*"):
            if path.suffix in (".py", ".md", ".yaml", ".sh"):
                if path == Path(__file__):
                    continue
                assert not pattern.search(path.read_text(encoding="utf-8")), (
                    path
                )


HEAVY = ("keras_hub", "tf_adapters.runs", "tf_adapters.encoders")


@pytest.mark.parametrize(
    "name",
    [
        "__init__.py",
        "cli/flags.py",
        "cli/main.py",
        "cli/train.py",
        "data/rows/splits.py",
        "data/rows/load.py",
        "runs/task_data.py",
    ],
)
def test_reading_data_needs_no_keras_hub(name):
    """So that missing data is reported within seconds."""
    module = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    light = (
        "tf_adapters.runs.remote_folder",
        "tf_adapters.runs.summary",
        "tf_adapters.runs.pretraining_task",
        "tf_adapters.runs.task_data",
    )
    for node in module.body:
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        heavy = [n for n in names if n.startswith(HEAVY) and n not in light]
        assert not heavy
