"""What must be true before a version is released."""

from pathlib import Path
import re
import subprocess
import tomllib

from packaging.requirements import Requirement

from release import lock

ROOT = Path(__file__).parents[1]


def problems() -> list[str]:
    """Returns a sentence for each thing that must change before a release."""
    version = version_of_package()
    return [
        *_version_problems(version),
        *_changelog_problems(version, _text("CHANGELOG.md")),
        *_date_problems(_text("CITATION.cff"), _text("CHANGELOG.md")),
        *_lock_problems(),
        *_git_problems(),
    ]


def version_of_package() -> str:
    """Returns `tf_adapters.__version__`, without importing the package."""
    text = _text("tf_adapters/__init__.py")
    return re.search(r'^__version__ = "(.+)"$', text, re.M)[1]


def _version_problems(version: str) -> list[str]:
    cited = re.search(r"^version: (.+)$", _text("CITATION.cff"), re.M)[1]
    found = []
    if cited != version:
        found.append(
            f"CITATION.cff is of version {cited}, and the package of {version}."
        )
    project = tomllib.loads(_text("pyproject.toml"))["project"]
    for classifier in project["classifiers"]:
        python = re.fullmatch(
            r"Programming Language :: Python :: (3\.\d+)", classifier
        )
        if python and python[1] not in _text("README.md"):
            found.append(f"README.md does not name Python {python[1]}.")
    return found


def _changelog_problems(version: str, text: str) -> list[str]:
    """Returns the problems of a changelog with the version to release."""
    titles = re.findall(r"^## (\S+)(.*)$", text, re.M)
    if titles[0][0] == "Unreleased":
        return [
            "CHANGELOG.md begins with `## Unreleased`: write "
            f"`## {version} (<date>)` in its place, and raise the version in "
            "tf_adapters/__init__.py and CITATION.cff if it is the last one's."
        ]
    if titles[0][0] != version:
        return [
            f"CHANGELOG.md begins with version {titles[0][0]}, and the package "
            f"has {version}."
        ]
    return []


def _date_problems(citation: str, changelog: str) -> list[str]:
    """Returns whether a citation file has the date of the last release."""
    cited = re.search(r"^date-released: (.+)$", citation, re.M)[1]
    dates = re.findall(r"^## \S+ \((.+)\)$", changelog, re.M)
    if cited == dates[0]:
        return []
    return [
        f"CITATION.cff has the date {cited}, and CHANGELOG.md has {dates[0]}."
    ]


def _lock_problems() -> list[str]:
    locked = lock.read_lock(_text("requirements.lock"))
    versions = {one.name: one.version for one in locked}
    lines = _text("requirements.txt").splitlines()
    pins = [Requirement(line) for line in lines if line and line[0] != "#"]
    missing = [
        pin
        for pin in pins
        if (version := versions.get(lock.normalized(pin.name))) is None
        or not pin.specifier.contains(version)
    ]
    return [f"requirements.lock lacks {m}: run `make lock`." for m in missing]


def _git_problems() -> list[str]:
    command = ["git", "-C", str(ROOT), "status", "--porcelain"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if done.stdout:
        return ["There are changes that are not committed: commit them."]
    return []


def _text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")
