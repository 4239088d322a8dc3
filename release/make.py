"""Builds and checks a release, and says what a person must do.

    make release
    python -m release.make dist --pythons=3.11

Nothing is uploaded and nothing is tagged.
"""

import argparse
import os
from pathlib import Path
import subprocess
import sys

from release import bill
from release import checks
from release import environments
from release import systems
from release import wheel

ROOT = Path(__file__).parents[1]
_TO_DO = """\
Left for a person:
1. Read the changelog of {version}, and the pages that it names.
2. Run `make test-all` on the machine that stands for the numbers.
3. git tag v{version} && git push origin v{version}
4. cd {folder} && python -m twine upload {names}
5. Attach {folder}/*.cdx.json and these hashes to the release's notes:
{hashes}"""


def make(folder: Path, pythons: list[str]) -> list[str]:
    """Builds a release and checks it.

    Args:
        folder: Folder for the wheel, source archive and bill of materials.
        pythons: Versions of Python to try the wheel with.

    Returns:
        A sentence for each problem. A list of what a person must do is printed
        if there is none.
    """
    _remove_old(folder)
    hashes = wheel.build_twice(folder)
    version = checks.version_of_package()
    bill.write_bill(folder / f"tf_adapters-{version}.cdx.json")
    files = [str((folder / name).resolve()) for name in hashes]
    found = checks.problems()
    found += _failures("twine", sys.executable, "-m", "twine", "check", *files)
    found += _failures("mkdocs", sys.executable, "-m", "mkdocs", "build", "-q")
    (built,) = folder.glob("tf_adapters-*.whl")
    found += _systems(built)
    for python in pythons:
        found += _trial(built, python)
    if not found:
        lines = [f"   sha256:{value}  {name}" for name, value in hashes.items()]
        text = "\n".join(lines)
        names = " ".join(hashes)
        print(
            _TO_DO.format(
                version=version, folder=folder, names=names, hashes=text
            )
        )
    return found


def _remove_old(folder: Path) -> None:
    """Removes earlier builds, but no files of other packages."""
    for pattern in ("tf_adapters-*.whl", "tf_adapters-*.tar.gz"):
        for old in folder.glob(pattern):
            old.unlink()


def _failures(name: str, *command: str) -> list[str]:
    """Runs a command; returns a sentence with its output if it fails."""
    print(f"{name} ...", flush=True)
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, env=environment, cwd=ROOT, capture_output=True, text=True
    )
    if done.returncode == 0:
        return []
    return [f"{name} failed:\n{done.stdout}{done.stderr}"]


def _systems(built: Path) -> list[str]:
    print("resolving for all systems ...", flush=True)
    readme = systems.DOCUMENT.read_text(encoding="utf-8")
    made = systems.table(built)
    if systems.with_table(readme, made) == readme:
        return []
    return [f"The table of systems in README.md should be:\n{made}"]


def _trial(built: Path, python: str) -> list[str]:
    """Tries the wheel with a version of Python; returns sentences on problems.

    A version that is not on this machine is no problem, but is printed.
    """
    program = environments.interpreter(python)
    if program is None:
        print(f"Python {python} is not here: only resolved, not tried.")
        return []
    print(f"trying the wheel with Python {python} ...", flush=True)
    try:
        print(environments.try_wheel(built, program))
    except subprocess.CalledProcessError as error:
        return [f"With Python {python}, {error}\n{error.stderr}"]
    return []


def main() -> None:
    """Makes the release; exits with status 1 if there is a problem."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--pythons",
        default=",".join(environments.PYTHONS),
        help="versions to try the wheel with, with commas between",
    )
    options = parser.parse_args()
    pythons = [python for python in options.pythons.split(",") if python]
    found = make(options.folder, pythons)
    for sentence in found:
        print(f"- {sentence}", file=sys.stderr)
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
