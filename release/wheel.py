"""Builds the wheel and the source archive, and compares two builds.

    python -m release.wheel dist

Both builds start from the same commit, in folders of their own. The times in
the archives are the commit's, so the files are equal bit for bit, on any day
and in any folder.
"""

import hashlib
import os
from pathlib import Path
import subprocess
import sys
import tempfile

ROOT = Path(__file__).parents[1]


def build(folder: Path) -> dict[str, str]:
    """Builds wheel and source archive of the current commit.

    Args:
        folder: Folder for the two files.

    Returns:
        Dict from the name of a file to its SHA-256.
    """
    time = _run("git", "-C", str(ROOT), "log", "-1", "--format=%ct").strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": time}
    with tempfile.TemporaryDirectory() as place:
        _export(Path(place))
        code = (
            "import hatchling.build as b, sys; f = sys.argv[1]; "
            "print('', b.build_wheel(f), b.build_sdist(f), sep='\\n')"
        )
        folder.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-c", code, str(folder.resolve())]
        output = subprocess.run(
            command, cwd=place, env=environment, check=True, capture_output=True
        ).stdout
    # The folder can have files of other versions.
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in output.decode().splitlines()[-2:]
    }


def _export(place: Path) -> None:
    """Copies the files of the current commit, without git's own."""
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "HEAD"],
        check=True,
        capture_output=True,
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(place)], input=archive, check=True)


def _run(*command: str) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout


def build_twice(folder: Path) -> dict[str, str]:
    """Builds twice, and returns the files and their SHA-256; see `build`.

    Raises:
        ValueError: If the files of the two builds differ.
    """
    with tempfile.TemporaryDirectory() as other:
        first, second = build(folder), build(Path(other))
    if first != second:
        raise ValueError(f"Two builds of one commit differ: {first}, {second}")
    return first


def main() -> None:
    """Builds twice and prints the hashes."""
    folder = Path(sys.argv[1])
    for name, value in build_twice(folder).items():
        print(f"sha256:{value}  {folder / name} (two builds, one hash)")


if __name__ == "__main__":
    main()
