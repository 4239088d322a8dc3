"""Every reader of files as a function of bytes, for both fuzzers.

A target writes the bytes where its reader looks for them and reads them. What
the project refuses, it refuses with an error that a person can act on; any
other exception leaves the target, and is what a fuzzer looks for.
"""

import dataclasses
import json
from pathlib import Path

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters import tasks
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.config import resolve
from tf_adapters.data.rows import load
from tf_adapters.data.rows import sampling
from tf_adapters.runs import checkpoints

_TASKS = {
    "jsonl": ("sst2", "stsb", "winogrande", "hellaswag", "wikiann", "squad"),
    "csv": ("sst2", "stsb", "winogrande", "wikiann"),
    "tsv": ("sst2", "stsb", "winogrande", "wikiann"),
    "conllu": ("ud_pos",),
    "conll": ("wikiann",),
    "json": ("squad",),
    "txt": ("sst2", "wikiann"),
}


def _rows(ending, folder, content):
    """Reads a data file as each kind of task that has such files."""
    path = Path(folder) / f"data.{ending}"
    path.write_bytes(content)
    for name in _TASKS[ending]:
        task = tasks.get(name)
        try:
            if ending == "txt":
                rows = load.load_file(task, path)
            else:
                task = dataclasses.replace(task, files={"train": str(path)})
                rows = load.load_split(task, "train")
        except DataError as error:
            assert path.name in str(error)
            _check_length(error)
            continue
        assert rows
        sampling.fingerprint(rows)
        # What the tokenizer and the file of predictions do with them.
        json.dumps(rows, ensure_ascii=False).encode()


def _for_users(read, *arguments):
    """Calls a function; what it refuses it has to refuse in our words."""
    try:
        return read(*arguments)
    except ValueError as error:
        if not isinstance(error, UserError):
            raise
        _check_length(error)
        return None


def _check_length(error):
    """A message repeats 200 characters of a value, and ten rows of many."""
    assert len(str(error)) < 5000


def _resolve(*layers):
    resolve.resolve_config({"task": "sst2"}, *layers)


def _config_file(folder, content):
    path = Path(folder) / "config.yaml"
    path.write_bytes(content)
    layer = _for_users(resolve.load_yaml, path)
    if layer is not None:
        _for_users(_resolve, layer)


def _override(folder, content):
    text = content.decode("utf-8", "replace")
    layer = _for_users(resolve.parse_override, text)
    if layer is not None:
        _for_users(_resolve, layer)


def _task_file(folder, content):
    path = Path(folder) / "task.yaml"
    path.write_bytes(content)
    _for_users(tasks.load_task_file, path, False)


def _adapter_config(folder, content):
    (Path(folder) / adapter_folder.CONFIG_FILE).write_bytes(content)
    found = _for_users(adapter_folder.read_adapter_config, folder)
    if found is None:
        return
    assert isinstance(found["encoder"]["name"], str)
    _for_users(methods.from_config, found["method"])
    if found["head"] is not None:
        _for_users(heads.from_config, found["head"])


def _tensors(folder, content):
    path = Path(folder) / adapter_folder.WEIGHTS_FILE
    path.write_bytes(content)
    tensors = _for_users(adapter_folder.read_tensors, path)
    assert tensors is None or all(t.size >= 0 for t in tensors.values())


def _checkpoint(folder, content):
    """Reads a checkpoint whose state is the given one: whole, or not at all."""
    path = Path(folder) / "checkpoints"
    if not path.exists():
        checkpoints.save_checkpoint(
            path, checkpoints.Checkpoint(5, {}, {"a": 1})
        )
        (path / "00000010").mkdir()
        saved = path / "00000005" / "tensors.safetensors"
        (path / "00000010" / saved.name).write_bytes(saved.read_bytes())
    written = json.loads((path / "00000005" / "state.json").read_text())
    content = content.replace(b"SHA256", written["sha256"].encode())
    (path / "00000010" / "state.json").write_bytes(content)
    found = checkpoints.newest_checkpoint(path)
    assert isinstance(found.step, int) and isinstance(found.state, dict)


def _reader(ending):
    return lambda folder, content: _rows(ending, folder, content)


TARGETS = {
    **{ending: _reader(ending) for ending in _TASKS},
    "config_file": _config_file,
    "override": _override,
    "task_file": _task_file,
    "adapter_config": _adapter_config,
    "tensors": _tensors,
    "checkpoint": _checkpoint,
}
