"""Tries a wheel in empty environments, one for each version of Python."""

from pathlib import Path
import shutil
import subprocess
import tempfile

from release import lock

PYTHONS = ("3.11", "3.12", "3.13")
_TRIAL = """\
text,label
a fine film,yes
a dull one,no
"""


def interpreter(python: str) -> str | None:
    """Returns the program of a version of Python, or `None` if missing."""
    name = shutil.which(f"python{python}")
    if name is None:
        return None
    # A launcher may exist without the version that it is named after.
    done = subprocess.run([name, "--version"], capture_output=True, text=True)
    starts = done.stdout.startswith(f"Python {python}.")
    return name if done.returncode == 0 and starts else None


def try_wheel(wheel: Path, program: str) -> str:
    """Installs a wheel in an empty environment, and trains, predicts, explains.

    Args:
        wheel: Path of the wheel. pip installs its dependencies.
        program: The Python to make the environment with.

    Returns:
        The explanation that the installed command printed.

    Raises:
        subprocess.CalledProcessError: If a step fails. Its `stderr` says why.
    """
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        _run(program, "-m", "venv", str(folder / "env"))
        programs = folder / "env" / "bin"
        pip = (str(programs / "pip"), "--disable-pip-version-check", "install")
        _run(*pip, "--quiet", "--no-compile", str(wheel.resolve()))
        _run(*pip, "--quiet", "--no-deps", lock.ALONE)
        (folder / "films.csv").write_text(_TRIAL * 20, encoding="utf-8")
        command = str(programs / "tf-adapters")
        columns = ("--text=text", "--label=label", "--model_dir=run")
        _run(command, "train", "--data=films.csv", *columns, folder=folder)
        _run(command, "predict", "run", "a fine film", folder=folder)
        return _run(command, "explain", "run", "a fine film", folder=folder)


def _run(*command: str, folder: Path | None = None) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout
