"""Cases with unusable adapters, encoders, settings, folders and disks."""

import json

import numpy as np
import safetensors.numpy

from tests import stored
from tests.bad_input.case import error
from tests.bad_input.case import result
from tests.bad_input.space import ROWS
from tests.bad_input.space import SETTINGS
from tests.bad_input.space import path_of
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models import saving

_WEIGHTS = "adapter/adapter.safetensors"
_CONFIG = "adapter/adapter_config.json"
# A file of 10 bytes that claims a header of four tebibytes.
_TERABYTES = (1 << 42).to_bytes(8, "little") + b"{}"


def _truncate(name):
    def change(folder):
        content = (folder / name).read_bytes()
        (folder / name).write_bytes(content[: len(content) // 2])

    return change


def _write(name, content):
    def change(folder):
        (folder / name).write_bytes(content)

    return change


def _with_tensor(name, value):
    def change(folder):
        def fill(tensors):
            shape = tensors["head/bias"].shape
            tensors[name] = np.full(shape, value, "float32")

        stored.change_weights(folder / "adapter", fill)

    return change


def _flip_a_bit(folder):
    content = bytearray((folder / _WEIGHTS).read_bytes())
    content[-1] ^= 1
    (folder / _WEIGHTS).write_bytes(content)


def _with_config(key, value):
    def change(folder):
        config = json.loads((folder / _CONFIG).read_text())
        (folder / _CONFIG).write_text(json.dumps({**config, key: value}))

    return change


def _with_index(names):
    def change(folder):
        (folder / "model.safetensors").rename(folder.parent / "x.safetensors")
        index = folder / "model.safetensors.index.json"
        index.write_text(json.dumps({"weight_map": names}))

    return change


def _write_nan(folder):
    path = folder / "model.safetensors"
    tensors = safetensors.numpy.load_file(path)
    next(iter(tensors.values())).flat[0] = np.nan
    safetensors.numpy.save_file(tensors, path)


def _with_blocks(folder):
    path = folder / "config.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "num_hidden_layers": 2**31}))


def _evaluated(change):
    return lambda space: space.evaluate_after(change)


def _trained_on(change):
    return lambda space: space.train_on(change)


def _trained_with(*overrides, **options):
    return lambda space: space.train_with(*overrides, **options)


def _evaluate_on_another_encoder(space):
    another = space.folder / "encoder"

    def change(folder):
        weights = folder / "model.safetensors"
        tensors = safetensors.numpy.load_file(weights)
        tensors = {name: tensor * 1.01 for name, tensor in tensors.items()}
        safetensors.numpy.save_file(tensors, weights)

    space.copy_encoder(change)
    return space.evaluate_after(lambda folder: None, encoder=str(another))


ADAPTERS = [
    error(
        "a truncated `adapter.safetensors`",
        "it is truncated or damaged",
        _evaluated(_truncate(_WEIGHTS)),
    ),
    error(
        "an `adapter.safetensors` whose header claims terabytes",
        "it is truncated or damaged",
        _evaluated(_write(_WEIGHTS, _TERABYTES)),
    ),
    error(
        "a flipped bit in `adapter.safetensors`",
        "its checksum differs",
        _evaluated(_flip_a_bit),
    ),
    error(
        "a tensor whose name climbs out of the folder",
        "Unexpected: ../../head/bias",
        _evaluated(_with_tensor("../../head/bias", 0)),
    ),
    error(
        "NaN in the weights of an adapter",
        "weight `head/bias` has values that are not finite",
        _evaluated(_with_tensor("head/bias", np.nan)),
    ),
    error(
        "a truncated `adapter_config.json`",
        "is damaged, or was not written by this library",
        _evaluated(_truncate(_CONFIG)),
    ),
    error(
        "a method in `adapter_config.json` with a parameter of another type",
        "Setting `method.units` must be of type int",
        _evaluated(_with_config("method", {"name": "houlsby", "units": []})),
    ),
    error(
        "an adapter of another encoder",
        "Load that encoder.",
        _evaluate_on_another_encoder,
    ),
]
ENCODERS = [
    error(
        "a truncated `model.safetensors`",
        "The file is damaged or incomplete: download it again",
        _trained_on(_truncate("model.safetensors")),
    ),
    error(
        "a `model.safetensors` whose header claims terabytes",
        "The file is damaged or incomplete: download it again",
        _trained_on(_write("model.safetensors", _TERABYTES)),
    ),
    error(
        "an index of weights whose names climb out of the folder",
        "names files outside of its folder: ['../x.safetensors']",
        _trained_on(_with_index({"a": "../x.safetensors"})),
    ),
    error(
        "an index of weights that lists no files",
        "is damaged: expected `weight_map`",
        _trained_on(_with_index([])),
    ),
    error(
        "NaN in a tensor of `model.safetensors`",
        "has values that are not finite",
        _trained_on(_write_nan),
    ),
    error(
        "a `config.json` that asks for 2,147,483,648 blocks",
        "`num_hidden_layers` must be at most 100",
        _trained_on(_with_blocks),
    ),
    error(
        "a `config.json` that holds a list",
        "must hold a JSON object",
        _trained_on(_write("config.json", b"[]")),
    ),
]


def _config_file(content):
    def do(space):
        path = path_of(space.folder, "own.yaml")
        path.write_bytes(content)
        return space.train_with(config_file=str(path), settings={"method": {}})

    return do


def _task_file(name):
    def do(space):
        path = path_of(space.folder, "task.yaml")
        path.write_text(
            f"name: {name}\ntext_fields: [a]\nlabels: [x, y]\n"
            "files: {train: a.csv, validation: b.csv}\n"
        )
        return space.command(
            space.folder / "run", {"data": {"task_file": str(path)}}
        )

    return do


SETTINGS_CASES = [
    error(
        "a misspelt key, in `--params_override`",
        "Unknown setting `train.learning_rat`. Did you mean "
        "`train.learning_rate`?",
        _trained_with("train.learning_rat=1"),
    ),
    error(
        "a misspelt key of a method, in `--config_file`",
        "Unknown setting `method.unit`. Did you mean `method.units`?",
        _config_file(b"method: {name: houlsby, unit: 8}"),
    ),
    error(
        "a misspelt method",
        "Unknown method `houlsbi`. Did you mean `houlsby`?",
        _trained_with("method=houlsbi", settings={"method": {}}),
    ),
    error(
        "a method whose name climbs out of the folder of methods",
        "Unknown method `../studies/demo`",
        _trained_with(settings={"method": "../studies/demo"}),
    ),
    error(
        "NaN as a learning rate",
        "`train.learning_rate` must be at least 0.0. Received: nan",
        _trained_with("train.learning_rate=.nan"),
    ),
    error(
        "settings that are not UTF-8",
        "own.yaml is not UTF-8 at byte 7",
        _config_file(b"task: \xff"),
    ),
    error(
        "settings with a value that YAML cannot read",
        "own.yaml is not YAML that can be read",
        _config_file(b"seed: !!timestamp x"),
    ),
    error(
        "settings whose aliases expand to billions of values",
        "not YAML that can be read: more than 100,000 values",
        _config_file(
            b"a: &a [x, x, x, x, x, x, x, x]\n"
            + b"".join(
                b"%c: &%c [%s]\n" % (new, new, b", ".join([b"*%c" % old] * 8))
                for old, new in zip(b"abcdefgh", b"bcdefghi", strict=True)
            )
        ),
    ),
    error(
        "a task file whose name climbs out of the folder of runs",
        "must not contain `/`",
        _task_file("../../elsewhere"),
    ),
]


def _below_a_file(space):
    path_of(space.folder, "file").write_text("")
    return space.folder / "file" / "run"


def _predict_below_a_file(space):
    texts = path_of(space.folder, "in.txt")
    texts.write_text("good\n")
    output = str(_below_a_file(space) / "out.jsonl")
    options = {"input": str(texts), "output": output}
    return space.command(space.run, mode="predict", **options)


# Not even root can create a folder here.
_READ_ONLY = "/proc/tf_adapters"
_HOULSBY = {
    "method": {"name": "houlsby", "units": 64},
    "train": {
        **SETTINGS["train"],
        "checkpoint_seconds": 0.0,
        "validate_every_steps": 1,
    },
}


def _train_on_a_full_disk(space):
    with space.largest_file(100_000):
        return space.train_with(settings=_HOULSBY)


def _go_on_after_a_full_disk(space):
    """Fills the disk after the first adapter, before the first checkpoint."""
    outcome = _train_on_a_full_disk(space)
    assert "Free some space" in outcome.said
    run = space.folder / "run"
    encoder, _ = load_encoder(SETTINGS["encoder"])
    saving.load_adapter(run / "adapter", encoder)
    assert not list(run.rglob("*partial*"))
    assert not list((run / "checkpoints").iterdir())
    outcome = space.train_with(settings=_HOULSBY)
    assert (run / "result.json").exists()
    return outcome


def _start_on_a_full_disk(space):
    """Checks that the files of an unfinished run are not truncated."""
    run = space.copy_run()
    (run / "result.json").unlink()
    before = (run / "config.yaml").read_bytes()
    space.data(train__jsonl=ROWS, dev__jsonl=ROWS[:2])
    with space.largest_file(100):
        outcome = space.train_with(model_dir=run)
    assert (run / "config.yaml").read_bytes() == before
    return outcome


def _export_on_a_full_disk(space):
    run = space.copy_run()
    with space.largest_file(5_000):
        return space.command(run, mode="export")


DISKS = [
    error(
        "a read-only run folder",
        "Give a folder that you may write to",
        _trained_with(model_dir=_READ_ONLY),
    ),
    error(
        "a run folder whose parent is a file",
        "Give a folder that you may write to",
        lambda space: space.train_with(model_dir=_below_a_file(space)),
    ),
    error(
        "predictions to be written to such a folder",
        "Give a path that you may write to",
        _predict_below_a_file,
    ),
    error(
        "a disk that is full when a stopped run resumes",
        "Give a folder that you may write to",
        _start_on_a_full_disk,
    ),
    result(
        "a disk that is full while a run trains",
        "error: “Free some space”; its last adapter loads, and the same "
        "command resumes when there is space",
        _go_on_after_a_full_disk,
    ),
    error(
        "a disk that is full at an export",
        "Free some space, or give a folder on another disk",
        _export_on_a_full_disk,
    ),
]


def _train_to_nan(space):
    outcome = space.train_with(
        "train.learning_rate=3e38,train.warmup_fraction=0,train.epochs=9"
    )
    assert not (space.folder / "run" / "result.json").exists()
    return outcome


TRAINING = [
    error(
        "NaN in the loss",
        "Steps before it were finite. Lower --learning_rate",
        _train_to_nan,
    ),
]

CASES = [*ADAPTERS, *ENCODERS, *SETTINGS_CASES, *DISKS, *TRAINING]
