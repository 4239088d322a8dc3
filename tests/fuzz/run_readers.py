"""Readers of the files of a run."""

import json

import numpy as np

from tests.fuzz.reader import Reader
from tests.fuzz.reader import digest
from tests.runs import whole_runs
from tf_adapters import heads
from tf_adapters.config import resolve
from tf_adapters.runs import checkpoints
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import run_files
from tf_adapters.runs import run_folder

_HEAD = heads.Classification(("no", "yes"))
_DATA = {"train": {"rows": "f00"}, "validation": {"rows": "f01"}}
_COMPARED = {"target": np.array([0, 1, 1]), "predicted": np.array([1, 1, 1])}
_STATE = {"data_fingerprint": _DATA, "log_lines": 2, "position": [1, 2.5]}


def _checkpoint(step):
    generator = np.random.default_rng(step)
    tensors = {"w": generator.normal(size=(3, 2)), "step": np.array(step)}
    return checkpoints.Checkpoint(step, tensors, _STATE)


def _make_checkpoints(folder):
    for step in (5, 10):
        checkpoints.save_checkpoint(folder, _checkpoint(step))


_WHOLE = {digest(vars(_checkpoint(step))) for step in (5, 10)}


def _read_checkpoint(folder):
    """Returns whether a checkpoint was found; a changed one is a fault."""
    found = checkpoints.newest_checkpoint(folder)
    if found is None:
        return "none"
    state = json.loads((folder / f"{found.step:08d}/state.json").read_text())
    if "state_sha256" not in state:
        return "one of version 0.1.0, which is not checked"
    assert digest(vars(found)) in _WHOLE, "a checkpoint was read wrongly"
    return "one of them"


def _make_predictions(folder):
    predictions.save_predictions(folder, "test", _HEAD, _COMPARED)


def _read_predictions(folder):
    found = predictions.load_predictions(folder, "test")
    metrics = found and found.metrics(["accuracy", "f1"])
    return found and (found.head, found.compared, found.labels, metrics)


_RESULT = {
    "task": "rte",
    "validation": {"accuracy": 0.5, "loss": 0.7},
    "test": {"accuracy": 0.25},
    "seconds": 1.5,
    "steps": 27,
    "data_fingerprint": _DATA,
    "versions": {"keras": "3"},
    "method_report": {"gates": 0.5},
    "transfer": {
        "metric": "f1",
        "languages": {"de": {"split": "test", "f1": 0.5}},
        "f1": 0.5,
    },
}


def _config():
    return resolve.resolve_config(whole_runs.SETTINGS)


_TENSORS = {"w": np.ones(2)}


def _make_run(folder):
    """A stopped run with a result, as a killed process can leave it."""
    run = run_folder.RunFolder(folder, _config(), _DATA)
    for step in (1, 2):
        run.log({"step": step, "loss": 0.5, "validation": {"accuracy": 0.5}})
        run.save_checkpoint(step, _TENSORS, {"best": None})
    run.save_predictions("validation", _HEAD, _COMPARED)
    run.close()
    for path in [folder / ".lock", *folder.glob("tensorboard/*")]:
        path.unlink(missing_ok=True)


def _make_result(folder):
    _make_run(folder)
    resolve.save_config(_config(), folder / "config.yaml")
    run_files.write_result(folder / "result.json", _RESULT)


def _read_result(folder):
    """A file that is read and still has its checksum has all values."""
    result = earlier_runs.read_result(folder)
    path = folder / "result.json"
    if result is not None and "result_sha256" in json.loads(path.read_text()):
        assert result == _RESULT
    return result, earlier_runs.finished_result(folder, _config(), _DATA)


def _read_log(folder):
    return run_files.read_records(folder / "metrics.jsonl")


def _open_run(folder):
    """Resumes the run, which writes; a changed checkpoint is a fault."""
    run = run_folder.RunFolder(folder, _config(), _DATA)
    try:
        run.log({"step": 3, "loss": 0.5})
        run.save_result({"data_fingerprint": _DATA})
        found = run.checkpoint
        assert found is None or digest(found.tensors) == digest(_TENSORS)
    finally:
        run.close()


READERS = {
    "checkpoints": Reader(_make_checkpoints, _read_checkpoint),
    "predictions": Reader(_make_predictions, _read_predictions),
    "result.json": Reader(_make_result, _read_result),
    "metrics.jsonl": Reader(_make_run, _read_log),
    "run folder, resumed": Reader(_make_run, _open_run, writes=True),
}
