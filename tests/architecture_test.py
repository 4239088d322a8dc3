"""The rules of the design that a reader would otherwise have to trust."""

import ast
from pathlib import Path
import re

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tf_adapters"
SOURCES = sorted(PACKAGE.rglob("*.py"))
BACKEND_FREE = sorted(
    [
        PACKAGE / "adapted_block.py",
        PACKAGE / "adapted_encoder.py",
        *(PACKAGE / "layers").glob("*.py"),
        *(PACKAGE / "methods").glob("*.py"),
        *(PACKAGE / "heads").glob("*.py"),
    ]
)


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield f"{node.module}"


def _names(paths):
    return [str(path.relative_to(ROOT)) for path in paths]


@pytest.mark.parametrize("path", BACKEND_FREE, ids=_names(BACKEND_FREE))
def test_the_mathematics_imports_no_tensorflow(path):
    assert not [n for n in _imports(path) if n.startswith("tensorflow")]


def test_only_train_py_reads_flags():
    readers = [p for p in SOURCES if "absl.flags" in set(_imports(p))]
    readers += [p for p in SOURCES if "absl" in set(_imports(p))]
    assert not readers


def test_the_trainer_knows_no_method_by_name():
    text = (PACKAGE / "training" / "trainer.py").read_text().lower()
    text += (PACKAGE / "training" / "loop.py").read_text().lower()
    names = ("houlsby", "pfeiffer", "adapter_bias", "bitfit", "head_only")
    for name in (*names, "lora", "mixout", "diff_pruning"):
        assert name not in text


def test_only_runs_writes_the_files_of_a_run():
    for path in SOURCES:
        if path.name in ("runs.py", "study_runs.py"):
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
    assert set(readers) <= {"adapted_block.py", "huggingface_weights.py"}


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


HEAVY = {"keras_hub", "tf_adapters.training", "tf_adapters.encoders"}


@pytest.mark.parametrize(
    "name",
    [
        "__init__.py",
        "command_line.py",
        "command_train.py",
        "data/splits.py",
        "data/sources.py",
    ],
)
def test_reading_data_needs_no_keras_hub(name):
    """So that missing data is reported within seconds."""
    module = ast.parse((PACKAGE / name).read_text(encoding="utf-8"))
    imported = set()
    for node in module.body:
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    assert not imported & HEAVY
