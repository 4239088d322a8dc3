"""Runs the lines of the Dockerfiles without Docker, which is not available.

`FROM` is a fresh virtual environment, and `COPY` copies an export to a folder
that stands for the image's root. TensorFlow Serving is not run: the test checks
only that the files which its command names are there.
"""

import json
from pathlib import Path
import re
import shutil
import subprocess
import sys

from google.protobuf import text_format
import pytest
from tensorflow_serving.config import model_server_config_pb2

from tests.export import conftest
import tf_adapters
from tf_adapters import tasks
from tf_adapters.export import serving

ROOT = Path(__file__).parents[2]
_PIN = re.compile(r"([\w-]+)==([\w.]+)")


def _lines(name):
    """Returns a list of pairs: an instruction and its argument."""
    text = (ROOT / "docker" / f"{name}.Dockerfile").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def test_versions_are_those_of_the_requirements():
    text = (ROOT / "requirements.txt").read_text()
    pins = dict(_PIN.findall(text))
    run = dict(_lines("onnxruntime"))["RUN"]
    found = dict(_PIN.findall(run))
    assert set(found) == {"numpy", "onnxruntime", "tokenizers"}
    assert found == {name: pins[name] for name in found}
    image = dict(_lines("tensorflow_serving"))["FROM"]
    assert image.partition(":")[2] == pins["tensorflow-serving-api"]


@pytest.mark.integration
def test_the_servers_command_finds_the_models(
    run_folder, pair_classifier, tmp_path
):
    lines = dict(_lines("tensorflow_serving"))
    source, target = lines["COPY"].split()
    assert source == "."
    root = tmp_path / "root"
    shutil.copytree(run_folder[0] / "export", root / target.lstrip("/"))
    (argument,) = json.loads(lines["CMD"])
    name, _, path = argument.partition("=")
    assert name == "--model_config_file"
    config = text_format.Parse(
        (root / path.lstrip("/")).read_text(),
        model_server_config_pb2.ModelServerConfig(),
    )
    (model,) = config.model_config_list.config
    served = root / model.base_path.lstrip("/")
    assert serving.versions(served)
    version = served / str(max(serving.versions(served)))
    assert (version / "saved_model.pb").is_file()


@pytest.mark.slow
def test_the_program_answers_in_a_fresh_environment(tmp_path):
    model, packer = conftest.make_model(
        "bert", tf_adapters.methods.Houlsby(units=4), tasks.get("sst2")
    )
    export = tf_adapters.export_onnx(model, packer, tmp_path / "reviews")
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    folder = tmp_path
    for instruction, argument in _lines("onnxruntime"):
        if instruction == "RUN":
            _run(["sh", "-c", argument], environment, folder)
        elif instruction == "WORKDIR":
            folder = tmp_path / argument.lstrip("/")
        elif instruction == "COPY":
            assert argument == ". ."
            shutil.copytree(export, folder)
        elif instruction == "CMD":
            command = json.loads(argument)
    printed = json.loads(_run(command, environment, folder))
    outputs = model(packer([command[-1]]), training=False).numpy()
    (expected,) = model.head.decode(outputs)
    assert printed["label"] == expected["label"]
    assert printed["probabilities"] == pytest.approx(
        expected["probabilities"], abs=1e-5
    )


def _run(command, environment, folder):
    """Runs a command with the programs of an environment; returns its output.

    No variable but PATH is passed on.
    """
    done = subprocess.run(
        ["env", "-i", f"PATH={environment / 'bin'}:/usr/bin:/bin", *command],
        cwd=folder,
        capture_output=True,
        check=True,
        text=True,
    )
    return done.stdout
