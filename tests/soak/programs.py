"""What a trial disturbs: programs that are called in a process of their own."""

import contextlib
import json
import multiprocessing
import os
import signal
import socket
import sys
import zipfile

import numpy as np
from safetensors.numpy import load_file

from tests.fixtures import huggingface_folders
from tf_adapters.cli import flags
from tf_adapters.common import adapter_folder

_FORK = multiprocessing.get_context("fork")


def train(arguments):
    """Runs `train.py` with arguments."""
    sys.argv = ["train.py", *arguments]
    flags.run()


def train_on_two(arguments):
    """Runs `train.py` with two logical devices."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
    train(arguments)


def train_on_workers(arguments):
    """Runs `train.py` as two workers; exits with 75 if one ends early."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(2)]
        for one in sockets:
            one.bind(("localhost", 0))
        addresses = [f"localhost:{one.getsockname()[1]}" for one in sockets]
    workers = [
        _FORK.Process(target=_work, args=(addresses, index, arguments))
        for index in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    statuses = {worker.exitcode for worker in workers}
    # A signal that comes after the training ends its worker at once.
    expected = {0, 75, -signal.SIGKILL, -signal.SIGTERM}
    sys.exit(max(statuses - expected, default=75 * any(statuses)))


def _work(addresses, index, arguments):
    os.environ["TF_CONFIG"] = json.dumps(
        {
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": index},
        }
    )
    train(arguments)


_TEXTS = ["a fine film", "a dull one", "the film", "no", "a dull film", "fine"]
_CLASSES = [1, 0, 1, 0, 0, 1]


def fit_text_model(method, seed, folder):
    """Trains a text model, saves it in both forms, and stores their answers.

    Args:
        method: Name of a method.
        seed: Integer.
        folder: Path of a folder, which need not exist.
    """
    from tf_adapters.common.errors import UserError

    try:
        _fit(method, seed, folder)
    except (UserError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def _fit(method, seed, folder):
    import tf_adapters

    folder.mkdir(parents=True, exist_ok=True)
    model = tf_adapters.TextModel.from_preset(
        str(huggingface_folders.ONE_BLOCK),
        method=method,
        labels=("bad", "good"),
        seed=seed,
    )
    model.compile(run_eagerly=True)  # Tracing takes longer.
    model.fit(_TEXTS, _CLASSES, batch_size=2, epochs=3, verbose=0)
    model.save_adapter(folder / "adapter")
    model.save(folder / "model.keras")
    answers = [
        tf_adapters.load(folder / name).predict(_TEXTS, verbose=0).tolist()
        for name in ("adapter", "model.keras")
    ]
    (folder / "result.json").write_text(json.dumps(answers))


def check_equal_text_models(folder, whole):
    """Raises an `AssertionError` if two saved text models differ."""
    answers, wanted = (
        json.loads((one / "result.json").read_text()) for one in (folder, whole)
    )
    assert answers == wanted
    check_left_text_model(folder, whole)


def check_left_text_model(folder, whole):
    """Raises an error if a saved form is there, and is not whole."""
    path = folder / "model.keras"
    if path.exists():
        assert zipfile.ZipFile(path).testzip() is None
    path = adapter_folder.find_adapter_folder(folder / "adapter")
    if path.exists():
        weights = load_file(path / "adapter.safetensors")
        wanted = load_file(whole / "adapter" / "adapter.safetensors")
        assert weights.keys() == wanted.keys()
        for name, array in wanted.items():
            np.testing.assert_array_equal(weights[name], array, err_msg=name)
