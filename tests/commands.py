"""Runs commands of `train.py`, for tests of whole runs."""

import json
from pathlib import Path
import types

from tf_adapters.cli import main as cli_main
from tf_adapters.config import resolve

# Its vocabulary is in tests/fixtures/tiny_encoders.py.
_FIXTURES = Path(__file__).parent / "fixtures"
ENCODER = str(_FIXTURES / "one_block/bert_of_rows")
ENCODER_OF_TWO_BLOCKS = str(_FIXTURES / "adapters/encoders/bert")


def run(model_dir, settings=None, **options):
    """Returns the exit status of a command."""
    defaults = {
        "mode": "train_and_eval",
        "model_dir": None if model_dir is None else str(model_dir),
        "config_file": None,
        "params_override": [],
        "input": None,
        "output": None,
        "column": None,
        "list": None,
        "study": None,
        "small": False,
        "two_cores": False,
        "one_gpu": False,
        "results_file": None,
        "report": False,
        "glue_submission": None,
        "plugin": [],
        "adapters": None,
        "overwrite": False,
        "study_processes": 1,
        "executor": "local",
        "ray_address": None,
        "ray_cpus": 1,
        "ray_gpus": 0.0,
        "format": "saved_model",
        "with_head": True,
        "precision": None,
    }
    layer = resolve.merge({"data": {}, "train": {}}, settings or {})
    return cli_main.run_command(
        layer, types.SimpleNamespace(**{**defaults, **options})
    )


def write_rows(path, rows):
    """Writes rows as JSON lines and returns the path as text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return str(path)


def read_rows(path):
    """Returns the rows of a file of JSON lines."""
    return [
        json.loads(line)
        for line in path.read_text(encoding="utf-8").split("\n")
        if line
    ]
