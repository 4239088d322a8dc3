"""The checks of a release, and its trial."""

import sys

import pytest

from release import checks
from release import environments
from release import make
import tf_adapters


def test_the_version_is_read_without_an_import():
    assert checks.version_of_package() == tf_adapters.__version__


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("# Changelog\n\n## 1.2.0 (2026-01-01)\n\n## 1.1.0\n", None),
        ("# Changelog\n\n## Unreleased\n\n## 1.2.0\n", "`## 1.2.0 (<date>)`"),
        ("# Changelog\n\n## 1.1.0\n", "1.1.0, and the package has 1.2.0"),
    ],
)
def test_the_changelog_begins_with_the_version(text, words):
    found = checks._changelog_problems("1.2.0", text)
    assert len(found) == (words is not None)
    assert all(words in sentence for sentence in found)


def test_the_citation_has_the_date_of_the_last_release():
    changelog = "# Changelog\n\n## Unreleased\n\n## 1.1.0 (2026-01-01)\n"
    right = "version: 1.1.0\ndate-released: 2026-01-01\n"
    assert checks._date_problems(right, changelog) == []
    (problem,) = checks._date_problems(right, changelog.replace("-01", "-02"))
    assert "2026-01-01" in problem and "2026-02-02" in problem
    names = ("CITATION.cff", "CHANGELOG.md")
    assert checks._date_problems(*map(checks._text, names)) == []


def test_the_files_agree_on_versions_of_python_and_packages():
    assert checks._version_problems(tf_adapters.__version__) == []
    (problem,) = checks._version_problems("99.0")
    assert "CITATION.cff" in problem
    assert checks._lock_problems() == []


@pytest.mark.parametrize(
    ("pin", "problems"),
    [("keras==3.15.1", 0), ("keras==3.15.2", 1), ("no_such_package==1.0", 1)],
)
def test_the_lock_file_has_the_versions_of_the_pins(monkeypatch, pin, problems):
    locked = f"keras==3.15.1 \\\n    --hash=sha256:{'a' * 64}\n"
    texts = {
        "requirements.lock": locked,
        "requirements.txt": f"# A comment.\n{pin}\n",
    }
    monkeypatch.setattr(checks, "_text", texts.__getitem__)
    found = checks._lock_problems()
    assert len(found) == problems
    assert all(pin in sentence for sentence in found)


def test_an_interpreter_is_found_only_if_it_runs(tmp_path, monkeypatch):
    launcher = tmp_path / "python3.11"
    launcher.write_text("#!/bin/sh\nexit 127\n")
    launcher.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environments.interpreter("3.11") is None
    assert environments.interpreter("3.12") is None
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    launcher.write_text(f"#!/bin/sh\necho Python {version}.0\n")
    found = environments.interpreter("3.11")
    assert found == (str(launcher) if version == "3.11" else None)


def test_only_our_own_earlier_builds_are_removed(tmp_path):
    old = ("tf_adapters-1.0-py3-none-any.whl", "tf_adapters-1.0.tar.gz")
    for name in (*old, "other-1.0-py3-none-any.whl", "other.tar.gz"):
        (tmp_path / name).touch()
    make._remove_old(tmp_path)
    left = {file.name for file in tmp_path.iterdir()}
    assert left == {"other-1.0-py3-none-any.whl", "other.tar.gz"}


def test_a_failed_step_is_said_with_its_output():
    program = "import sys; print('why'); sys.exit(3)"
    (sentence,) = make._failures("a step", sys.executable, "-c", program)
    assert sentence.startswith("a step failed:") and "why" in sentence
    assert make._failures("a step", sys.executable, "-c", "") == []
