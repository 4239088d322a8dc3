"""Tests that an installed package works without its checkout."""

import json
import os
from pathlib import Path
import subprocess
import sys
import sysconfig
import tomllib
import zipfile

from packaging.requirements import Requirement
import pytest

from tests import commands
from tests.fixtures import studies
import tf_adapters
from tf_adapters.runs import provenance

pytestmark = pytest.mark.integration

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    _run(
        *(sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet"),
        *("--no-build-isolation", f"--wheel-dir={folder}", str(ROOT)),
    )
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """Makes an environment with the wheel and the installed packages."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", "--without-pip", str(folder))
    _run(
        *(sys.executable, "-m", "pip", f"--python={folder}/bin/python"),
        *("install", "--no-deps", "--quiet", str(wheel)),
    )
    (packages,) = folder.glob("lib/python*/site-packages")
    (packages / "at_hand.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder


def _run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _command(environment, folder, *flags):
    """Runs the command of the wheel in another folder than the checkout."""
    return _run(
        str(environment / "bin/tf-adapters"),
        *flags,
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )


def test_the_wheel_holds_the_package_and_its_configurations(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    for path in (ROOT / "official_configs").rglob("*.yaml"):
        assert f"tf_adapters/{path.relative_to(ROOT).as_posix()}" in names
    for pattern in ("*.py", "*.j2", "*.gz", "py.typed"):
        for path in (ROOT / "tf_adapters").rglob(pattern):
            assert path.relative_to(ROOT).as_posix() in names
    assert not [name for name in names if "tests/" in name]
    metadata = f"tf_adapters-{tf_adapters.__version__}.dist-info/"
    entry_points = metadata + "entry_points.txt"
    text = zipfile.ZipFile(wheel).read(entry_points).decode()
    assert "tf-adapters = tf_adapters.cli.flags:run" in text


def test_it_trains_predicts_and_runs_a_study_in_another_folder(
    environment, tmp_path
):
    # An environment inside somebody's repository: its commit is not ours.
    _run("git", "init", "--quiet", str(environment))
    settings = {
        "encoder": commands.ENCODER,
        "data.max_length": 32,
        "data.max_train_examples": 32,
        "train.epochs": 1,
    }
    overrides = ",".join(f"{k}={v}" for k, v in settings.items())
    trained = _command(
        environment,
        tmp_path,
        "--task=demo_sentiment",
        "--method=pfeiffer",
        f"--params_override={overrides}",
        "--model_dir=run",
    )
    assert "adapter: run/adapter" in trained
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["commit"] is None
    assert result["versions"]["tf_adapters"] == tf_adapters.__version__

    (tmp_path / "texts.txt").write_text("a fine film\n")
    flags = ("--mode=predict", "--model_dir=run", "--input=texts.txt")
    predicted = _command(environment, tmp_path, *flags)
    assert json.loads(predicted)["sentence"] == "a fine film"

    base = {**settings, "task": "demo_sentiment"}
    study = {"base": base, "grid": {"method": ["head_only"]}}
    (tmp_path / "tiny.yaml").write_text(json.dumps(study))
    table = _command(environment, tmp_path, "--study=tiny.yaml")
    assert "| demo_sentiment | accuracy | 1 |" in studies.squeezed(table)


def test_provenance_names_the_commit_of_a_checkout():
    head = _run("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD").strip()
    assert provenance._commit() in (head, f"{head}+changes")


def _pins():
    pins = {}
    for name in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / name).read_text().splitlines():
            if line and not line.startswith(("#", "-r")):
                requirement = Requirement(line)
                name = requirement.name.lower().replace("_", "-")
                (pin,) = requirement.specifier
                pins[name] = pin.version
    return pins


@pytest.mark.parametrize(
    "text",
    [*PROJECT["dependencies"], *(r for some in EXTRAS.values() for r in some)],
)
def test_what_the_tests_run_with_lies_in_the_declared_range(text):
    requirement = Requirement(text)
    pin = _pins()[requirement.name.lower().replace("_", "-")]
    assert requirement.specifier.contains(pin)


def test_every_pin_is_declared():
    declared = [*PROJECT["dependencies"], *sum(EXTRAS.values(), [])]
    names = {
        Requirement(text).name.lower().replace("_", "-") for text in declared
    }
    assert set(_pins()) == names
