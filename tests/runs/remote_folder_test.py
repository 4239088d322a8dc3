"""Tests run folders at an address, in TensorFlow's in-memory file system."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests.runs import whole_runs
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.runs import multitask
from tf_adapters.runs import remote_folder
from tf_adapters.runs import run_folder
from tf_adapters.runs import whole_run

SETTINGS = {
    "task": "demo_sentiment",
    "encoder": commands.ENCODER,
    "method": "houlsby",
    "data": {"max_train_examples": 40, "max_length": 24},
    "train": {"epochs": 3, "batch_size": 16, "checkpoint_seconds": 0},
}
gfile = tf.io.gfile


@pytest.fixture(autouse=True)
def copied(monkeypatch):
    """Lets the memory overwrite; returns the list of what is copied where."""
    copied, copy = [], gfile.copy

    def replace(source, target, overwrite=False):
        copied.append(target)
        # The memory appends to a file where other file systems replace it.
        if overwrite and gfile.exists(target):
            gfile.remove(target)
        copy(source, target, overwrite)

    monkeypatch.setattr(gfile, "copy", replace)
    return copied


def _read(path):
    with gfile.GFile(path, "rb") as file:
        return file.read()


def _names(address):
    return {
        f"{folder.rstrip('/')}/{name}".removeprefix(address).strip("/")
        for folder, _, names in gfile.walk(address)
        for name in names
    }


def test_only_what_is_new_goes_there_and_what_is_gone_goes(copied):
    folder = remote_folder.local("ram://bucket/new")
    (folder / "a").mkdir()
    (folder / "a" / "one").write_text("1")
    (folder / "two").write_text("2")
    remote_folder.copy_to_address(folder / "a")
    assert _names("ram://bucket/new") == {"a/one", "two"}
    copied.clear()
    (folder / "two").write_text("22")
    (folder / "a" / "one").unlink()
    names = ["config.yaml", "best", "tensors", "state.json"]
    for name in names:
        (folder / name).write_text("3")
    remote_folder.copy_to_address(folder)
    # Whose it is comes first, and that a checkpoint is whole last.
    names.insert(3, "two")
    assert copied == [f"ram://bucket/new/{name}" for name in names]
    assert _names("ram://bucket/new") == set(names)
    again = remote_folder.local("ram://bucket/new/")
    assert again != folder and (again / "two").read_text() == "22"
    assert remote_folder.address(again / "two") == "ram://bucket/new/two"


def test_a_local_folder_is_itself(tmp_path):
    assert remote_folder.local(tmp_path) == tmp_path
    assert remote_folder.address(tmp_path / "x") == str(tmp_path / "x")
    remote_folder.copy_to_address(tmp_path)


def test_an_address_in_a_folder_of_someone_else_is_not_used(tmp_path):
    folder, victim = tmp_path / "run", tmp_path / "victim"
    folder.mkdir()
    victim.mkdir()
    (victim / "thesis.txt").write_text("mine")
    (folder / ".address").write_text(str(victim))
    (folder / ".pushed").write_text('{"thesis.txt": [1, 1]}')
    (folder / "authorized_keys").write_text("theirs")
    remote_folder.copy_to_address(folder)
    assert [path.name for path in victim.iterdir()] == ["thesis.txt"]
    assert remote_folder.address(folder) == str(folder)


def test_names_at_an_address_stay_in_the_run_folder(monkeypatch):
    def walk(address):
        yield f"{address}/a/../../b", [], ["stolen"]

    monkeypatch.setattr(gfile, "exists", lambda address: True)
    monkeypatch.setattr(gfile, "walk", walk)
    with pytest.raises(ConfigError, match="leads out of the run folder"):
        remote_folder.local("ram://bucket/theirs")


def test_what_says_that_the_rest_is_whole_goes_first(monkeypatch):
    folder = remote_folder.local("ram://bucket/gone")
    for name in ("adapter", "result.json", "state.json", "tensors"):
        (folder / name).write_text("1")
    remote_folder.copy_to_address(folder)
    for path in folder.iterdir():
        if not path.name.startswith("."):
            path.unlink()
    removed = []
    monkeypatch.setattr(gfile, "remove", removed.append)
    remote_folder.copy_to_address(folder)
    assert [name.rpartition("/")[2] for name in removed] == [
        *("result.json", "state.json", "adapter", "tensors")
    ]


def test_a_death_after_overwriting_leaves_nothing_of_the_old_run(monkeypatch):
    address = "ram://bucket/overwritten"
    old, new = (resolve.resolve_config(SETTINGS, {"seed": n}) for n in (1, 2))
    run = run_folder.RunFolder(remote_folder.local(address), old, {})
    run.log({"step": 1, "loss": 0.5})
    run.save_checkpoint(1, {"w": np.ones(1)}, {})
    assert "checkpoints/00000001/state.json" in _names(address)

    def die(self, *configs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.RunFolder, "_save_configs", die)
        with pytest.raises(KeyboardInterrupt):
            run_folder.RunFolder(
                remote_folder.local(address), new, {}, overwrite=True
            )
    assert not {n for n in _names(address) if n.startswith("checkpoints")}
    assert (
        run_folder.RunFolder(remote_folder.local(address), new, {}).checkpoint
        is None
    )


@pytest.mark.slow
def test_a_run_is_stopped_goes_on_and_serves_from_its_address(
    tmp_path, monkeypatch, capsys
):
    assert commands.run(tmp_path / "local", SETTINGS) == 0
    address = "ram://bucket/run"
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 4)
        assert commands.run(address, SETTINGS) == 75
    assert "checkpoints/00000004/state.json" in _names(address)
    # Another machine: nothing but the address is known.
    assert commands.run(address, SETTINGS) == 0
    assert f"adapter: {address}/adapter" in capsys.readouterr().out
    name = "adapter/adapter.safetensors"
    assert (
        _read(f"{address}/{name}") == (tmp_path / "local" / name).read_bytes()
    )
    assert not any("checkpoints" in name for name in _names(address))
    result = json.loads(_read(f"{address}/result.json"))
    assert commands.run(address, mode="eval") == 0
    accuracy = result["validation"]["accuracy"]
    assert f"validation: accuracy {accuracy:.4f}" in capsys.readouterr().out
    assert commands.run(address, mode="export") == 0
    assert f"{address}/export/demo_sentiment/1" in capsys.readouterr().out
    assert "export/demo_sentiment/1/saved_model.pb" in _names(address)


def test_an_address_that_cannot_be_read(monkeypatch, capsys):
    def fail(address):
        raise tf.errors.PermissionDeniedError(None, None, "Not yours.\nMore")

    monkeypatch.setattr(gfile, "exists", fail)
    assert commands.run("ram://bucket/mine", SETTINGS) == 1
    message = capsys.readouterr().err
    assert "Cannot read or write ram://bucket/mine: Not yours." in message
    assert "More" not in message


@pytest.mark.slow
def test_tasks_that_train_together_go_on_and_serve_from_their_address(
    monkeypatch, capsys
):
    """The encoder that they share comes with each of them."""
    method = {
        "name": "multitask",
        "tasks": ["demo_sentiment", "demo_entailment"],
    }
    settings = {**SETTINGS, "method": method}
    del settings["task"]
    address = "ram://bucket/together"
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 8)
        assert commands.run(address, settings) == 75
    assert "demo_entailment/adapter/adapter.safetensors" in _names(address)
    assert commands.run(address, settings) == 0
    result = json.loads(_read(f"{address}/demo_entailment/result.json"))
    capsys.readouterr()
    assert commands.run(f"{address}/demo_entailment", mode="eval") == 0
    accuracy = result["validation"]["accuracy"]
    assert f"validation: accuracy {accuracy:.4f}" in capsys.readouterr().out


@pytest.mark.slow
def test_better_adapters_of_tasks_together_go_there_at_once(monkeypatch):
    """Not with the next checkpoint, which a killed process never writes."""

    def die(*args):
        raise SystemExit(9)

    method = {
        "name": "multitask",
        "tasks": ["demo_sentiment", "demo_acceptability"],
    }
    train = {**SETTINGS["train"], "epochs": 1, "checkpoint_seconds": 3600}
    settings = {**SETTINGS, "method": method, "train": train}
    del settings["task"]
    monkeypatch.setattr(multitask.MultitaskFolders, "save_results", die)
    with pytest.raises(SystemExit):
        commands.run("ram://bucket/killed", settings)
    names = _names("ram://bucket/killed")
    assert "demo_sentiment/adapter/adapter.safetensors" in names
    assert "encoder/adapter.safetensors" in names
    assert not any("checkpoints" in name for name in names)


def test_workers_that_pretrain_need_a_folder():
    config = resolve.resolve_config(
        SETTINGS, {"distribution_strategy": "multi_worker_mirrored"}
    )
    folder = remote_folder.local("ram://bucket/workers")
    with pytest.raises(ConfigError, match="ram://bucket/workers is an address"):
        whole_run._check_workers_read(config, folder)
    whole_run._check_workers_read(config, folder.parent)
    whole_run._check_workers_read(resolve.resolve_config(SETTINGS), folder)
