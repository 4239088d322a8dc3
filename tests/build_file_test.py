"""Tests that BUILD matches the tree. Reads BUILD as Python, without Bazel."""

import ast
import collections
import functools
import itertools
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _glob(root, patterns, exclude=()):
    """Imitates Bazel's `glob` for the package at the root."""

    def matches(pattern):
        # Python's trailing `**` stands for folders, Bazel's for files.
        pattern = pattern + "/*" if pattern.endswith("**") else pattern
        found = (p for p in root.glob(pattern) if p.is_file())
        return {p.relative_to(root).as_posix() for p in found}

    kept, left_out = (
        set().union(*map(matches, some)) for some in (patterns, exclude)
    )
    return sorted(kept - left_out)


def _targets(root, text):
    """Runs BUILD with fake rules, and returns their arguments."""
    targets = []

    def rule(**arguments):
        targets.append(arguments)

    ignore = lambda *args, **kwargs: None  # noqa: E731
    functions = {
        **dict.fromkeys(("py_library", "py_binary", "py_test"), rule),
        **dict.fromkeys(("package", "licenses", "exports_files"), ignore),
        "glob": functools.partial(_glob, root),
    }
    exec(compile(text, "BUILD", "exec"), functions)
    return targets


def _modules_imported(root, path):
    """Returns the files of this repository that a file imports."""
    tree = ast.parse((root / path).read_text())
    for_editors = {
        id(node)
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If)
        and ast.unparse(branch.test).endswith("TYPE_CHECKING")
        for node in ast.walk(branch)
    }
    for node in ast.walk(tree):
        names = []
        if id(node) in for_editors:
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            yield from _file_of(root, name)


def _file_of(root, name):
    """Returns the file of a module, or of the module with a symbol."""
    for module in (name, name.rpartition(".")[0]):
        stem = module.replace(".", "/")
        for candidate in (f"{stem}.py", f"{stem}/__init__.py"):
            if module and (root / candidate).is_file():
                return [candidate]
    return []


def _with_dependencies(targets, name):
    """Returns the names of a target and of all its dependencies."""
    deps = {target["name"]: target.get("deps", []) for target in targets}
    reached, ahead = set(), [name]
    while ahead:
        current = ahead.pop()
        if current not in reached:
            reached.add(current)
            ahead += [dep.lstrip(":") for dep in deps.get(current, [])]
    return reached


def _problems(root, text):
    """Returns a line for each difference between BUILD and the tree."""
    targets = _targets(root, text)
    return [
        *_name_problems(targets),
        *_source_problems(root, targets),
        *_import_problems(root, targets),
    ]


def _name_problems(targets):
    names = collections.Counter(target["name"] for target in targets)
    yield from (f"two targets {n}" for n, count in names.items() if count > 1)
    for target in targets:
        for dep in target.get("deps", []):
            if dep.lstrip(":") not in names:
                yield f"{target['name']}: no target {dep}"
            elif target["name"] in _with_dependencies(targets, dep.lstrip(":")):
                yield f"{target['name']}: depends on itself through {dep}"


def _source_problems(root, targets):
    owners = collections.Counter()
    for target in targets:
        for source in [*target.get("srcs", []), *target.get("data", [])]:
            if not (root / source).is_file():
                yield f"{target['name']}: no file {source}"
        owners.update(target.get("srcs", []))
    patterns = ["train.py", "tf_adapters/**/*.py", "tests/**/*_test.py"]
    for source in _glob(root, patterns):
        if owners[source] != 1:
            yield f"{source}: in {owners[source]} targets"


def _import_problems(root, targets):
    sources = {target["name"]: target.get("srcs", []) for target in targets}
    for target in targets:
        names = _with_dependencies(targets, target["name"])
        known = set(itertools.chain(*(sources.get(n, []) for n in names)))
        for source in target.get("srcs", []):
            if not (root / source).is_file():
                continue
            for module in _modules_imported(root, source):
                if module not in known:
                    yield f"{target['name']}: {source} imports {module}"


def test_build_and_tree_are_in_step():
    assert _problems(ROOT, (ROOT / "BUILD").read_text()) == []


def test_every_test_file_has_its_target():
    targets = _targets(ROOT, (ROOT / "BUILD").read_text())
    tests = {t["args"][0]: t for t in targets if "main" in t}
    assert sorted(tests) == _glob(ROOT, ["tests/**/*_test.py"])
    for path, target in tests.items():
        assert target["name"] == path.removesuffix(".py")
        assert {path, target["main"]} == set(target["srcs"])


SMALL_BUILD = """
py_library(name = "low", srcs = ["tf_adapters/low.py"])
py_library(name = "high", srcs = ["tf_adapters/high.py"], deps = [":low"])
py_binary(name = "train", srcs = ["train.py"], deps = [":high"])
[
    py_test(name = test[:-3], srcs = [test], deps = [":high"])
    for test in glob(["tests/**/*_test.py"])
]
"""


@pytest.fixture
def small_tree(tmp_path):
    files = {
        "tf_adapters/low.py": "import os",
        "tf_adapters/high.py": "from tf_adapters.low import something",
        "train.py": "from tf_adapters import high",
        "tests/a/high_test.py": "import tf_adapters.high",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_a_tree_in_step_has_no_problems(small_tree):
    assert _problems(small_tree, SMALL_BUILD) == []


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"tf_adapters/low.py"', "", "tf_adapters/low.py: in 0 targets"),
        (
            '"tf_adapters/high.py"',
            '"tf_adapters/high.py", "tf_adapters/low.py"',
            "tf_adapters/low.py: in 2 targets",
        ),
        ('"train.py"', '"train.py", "gone.py"', "train: no file gone.py"),
        ('":low"', '":lower"', "high: no target :lower"),
        ('name = "high"', 'name = "low"', "two targets low"),
        (
            'deps = [":low"]',
            "deps = []",
            "high: tf_adapters/high.py imports tf_adapters/low.py",
        ),
        (
            'srcs = ["tf_adapters/low.py"]',
            'srcs = ["tf_adapters/low.py"], deps = [":high"]',
            "high: depends on itself through :low",
        ),
    ],
)
def test_each_kind_of_problem_is_found(small_tree, old, new, problem):
    text = SMALL_BUILD.replace(old, new, 1)
    assert problem in _problems(small_tree, text)


def test_a_new_file_without_a_target_is_found(small_tree):
    (small_tree / "tf_adapters/new.py").write_text("")
    assert _problems(small_tree, SMALL_BUILD) == [
        "tf_adapters/new.py: in 0 targets"
    ]
