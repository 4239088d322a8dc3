"""Readers of settings, tasks, studies and searches."""

import json
import shutil

from tests.fuzz.reader import Reader
from tests.runs import whole_runs
from tf_adapters import tasks
from tf_adapters.config import resolve
from tf_adapters.launch import planned_run
from tf_adapters.launch import search_folder
from tf_adapters.papers.studies import results_file
from tf_adapters.papers.studies.grid import declaration

_LAYER = """task: sst2
encoder: minilm
seed: 3
method: {name: houlsby, units: 16, leave_out: [0, 1]}
train: {learning_rate: 1.0e-3, epochs: 2, batch_size: 8}
data: {max_length: 64, max_train_examples: 100}
"""
_TASK = """name: tickets
text_fields: [subject, body]
labels: [billing, bug, other]
metrics: [macro_f1, accuracy]
files: {train: train.csv, validation: dev.csv, test: test.csv}
"""
_OVERRIDES = (
    "method=lora,method.rank=4,train.learning_rate=1e-3,"
    "data.eval_languages=[de, fr],method.leave_out=[0, 1],seed=5"
)


def _read_layer(folder):
    layer = resolve.load_yaml(folder / "own.yaml")
    return resolve.to_dict(resolve.resolve_config({"task": "sst2"}, layer))


def _make_config(folder):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    resolve.save_config(config, folder / "config.yaml")


def _read_config(folder):
    return resolve.to_dict(resolve.load_config(folder / "config.yaml"))


def _read_overrides(folder):
    text = (folder / "override").read_bytes().decode("utf-8", "replace")
    layer = resolve.parse_override(text)
    return resolve.to_dict(resolve.resolve_config({"task": "sst2"}, layer))


def _read_task(folder):
    # Its paths of files begin with that of the folder.
    task = tasks.load_task_file(folder / "task.yaml", check_files=False)
    return repr(task).replace(str(folder), "")


def _make_study(folder):
    shutil.copy(declaration.STUDIES / "heads.yaml", folder / "study.yaml")


def _read_study(folder):
    study, blocks = declaration.read_study(folder / "study.yaml")
    return repr(study), repr(blocks)


_RESULT = {"validation": {"accuracy": 0.5}, "seconds": 1.5, "task": "sst2"}


def _make_results(folder):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    settings = json.loads(planned_run.identity(resolve.to_dict(config)))
    rows = [
        {"run": f"r{i}", "settings": {**settings, "seed": i}, "result": _RESULT}
        for i in range(2)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "results.jsonl").write_text(text)


def _read_results(folder):
    return results_file.ResultsFile(folder / "results.jsonl")._results


_DATA = {"train": {"rows": "f00"}}


def _search_config():
    return resolve.resolve_config(whole_runs.SETTINGS)


def _make_search(folder):
    search = search_folder.SearchFolder(folder)
    search.check_same(_search_config(), ["houlsby"], _DATA)
    search.write_trial(0, {"train": {"learning_rate": 1e-3}}, 1)
    search.close()
    (folder / ".lock").unlink(missing_ok=True)


def _read_search(folder):
    search = search_folder.SearchFolder(folder)
    try:
        search.check_same(_search_config(), ["houlsby"], _DATA)
        return search.read_trial(0)
    finally:
        search.close()


READERS = {
    "settings": Reader(
        lambda folder: (folder / "own.yaml").write_text(_LAYER),
        _read_layer,
    ),
    "settings of a run": Reader(_make_config, _read_config),
    "--params_override": Reader(
        lambda folder: (folder / "override").write_text(_OVERRIDES),
        _read_overrides,
        special=False,
    ),
    "task file": Reader(
        lambda folder: (folder / "task.yaml").write_text(_TASK), _read_task
    ),
    "study": Reader(_make_study, _read_study),
    "results of studies": Reader(_make_results, _read_results),
    "search": Reader(_make_search, _read_search, writes=True),
}
