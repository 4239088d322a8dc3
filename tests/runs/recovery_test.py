"""Tests that a stopped run ends like an uninterrupted one."""

import contextlib
import itertools
import os
from pathlib import Path
import random
import shutil
import signal
import subprocess
import time
import types

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file
import tensorflow as tf

from tests.runs import forked_run
from tests.runs import whole_runs
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import Stopped
from tf_adapters.config import resolve
from tf_adapters.data.rows import splits
from tf_adapters.runs import run_folder
from tf_adapters.runs import run_folder_of_workers
from tf_adapters.runs import task_data
from tf_adapters.runs import training_run
from tf_adapters.training import workers

pytestmark = pytest.mark.integration


def _train(folder, seconds=0.0, overwrite=False, **layer):
    config = resolve.resolve_config(
        whole_runs.SETTINGS, {"train": {"checkpoint_seconds": seconds}}, layer
    )
    data = task_data.load_task_data(config)
    return training_run.train_experiment(
        config, data, folder, overwrite=overwrite
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    result = _train(folder, seconds=1000.0)
    assert result["steps"] == 27 and result["best_step"] > 5
    assert not (folder / "checkpoints").exists()
    return folder


@pytest.mark.slow
def test_sigterm(whole, tmp_path, monkeypatch, record_property):
    """After the first step; between two checks; at a validation; late.

    One run is stopped four times: each start builds its graph again, which is
    what takes the time here.
    """
    record_property("faults", 4)
    before = signal.getsignal(signal.SIGTERM)
    for step in (1, 7, 18, 23):
        with monkeypatch.context() as patch:
            whole_runs.stop_at(patch, step)
            with pytest.raises(Stopped, match=f"after step {step}. The same"):
                _train(tmp_path, seconds=1000.0)
        assert not (tmp_path / "result.json").exists()
        assert signal.getsignal(signal.SIGTERM) == before
    _train(tmp_path, seconds=1000.0)
    whole_runs.check_equal(tmp_path, whole)


@pytest.mark.slow
def test_a_crash_goes_back_to_the_last_checkpoint(whole, tmp_path, monkeypatch):
    """Steps, logs and best weights after it are repeated with equal results."""
    save = run_folder.RunFolder.save_checkpoint

    def save_some(self, step, tensors, state):
        if step <= 12:
            save(self, step, tensors, state)
        if step == 21:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(run_folder.RunFolder, "save_checkpoint", save_some)
        with pytest.raises(OSError, match="No space"):
            _train(tmp_path)
    logged = (tmp_path / "metrics.jsonl").read_text().count("\n")
    _train(tmp_path)
    whole_runs.check_equal(tmp_path, whole)
    assert logged > 3


def test_other_data_are_noticed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 2)
        # The folder is free again while the error, and so the run, is kept.
        with pytest.raises(Stopped) as kept:
            _train(tmp_path)
    load = splits.load_rows

    def changed(*arguments):
        rows = load(*arguments)
        rows["train"][0] = {**rows["train"][0], "sentence": "another text"}
        return rows

    monkeypatch.setattr(splits, "load_rows", changed)
    with pytest.raises(ConfigError, match="data have changed"):
        _train(tmp_path)
    assert "after step 2" in str(kept.value)


@pytest.mark.slow
def test_other_weights_of_the_encoder_are_noticed(tmp_path, monkeypatch):
    encoder = tmp_path / "encoder"
    shutil.copytree(whole_runs.SETTINGS["encoder"], encoder)
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 2)
        with pytest.raises(Stopped):
            _train(tmp_path / "run", encoder=str(encoder))
    weights = load_file(encoder / "model.safetensors")
    changed = {name: 1.01 * value for name, value in weights.items()}
    save_file(changed, encoder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ConfigError, match="weights of encoder `.*`"):
        _train(tmp_path / "run", encoder=str(encoder))


def _stopped(folder, config, overwrite=False, stopped=True, frozen=()):
    """Leaves a run that was stopped after its first step."""
    run = run_folder.RunFolder(folder, config, {}, overwrite, frozen=frozen)
    run.save_checkpoint(1, {"w": np.ones(1)}, {"stopped": stopped})


def test_other_weights_of_a_fusions_members_are_noticed(tmp_path):
    def model(member):
        return types.SimpleNamespace(
            encoder_info=types.SimpleNamespace(name="bert", fingerprint="one"),
            members=[
                types.SimpleNamespace(folder=name, fingerprint=fingerprint)
                for name, fingerprint in (("a", "two"), ("b", member))
            ],
        )

    config = resolve.resolve_config(whole_runs.SETTINGS)
    before, now = map(
        run_folder.frozen_weights, (model("three"), model("four"))
    )
    _stopped(tmp_path, config, frozen=before)
    with pytest.raises(ConfigError, match="the weights of `b` have") as kept:
        run_folder.RunFolder(tmp_path, config, {}, frozen=now)
    # The folder is free again, though the error keeps the refused run.
    assert run_folder.RunFolder(tmp_path, config, {}, frozen=before).checkpoint
    del kept
    # Those of earlier versions say nothing of it.
    _stopped(tmp_path, config)
    assert run_folder.RunFolder(tmp_path, config, {}, frozen=now).checkpoint


def test_two_runs_in_one_folder(tmp_path):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    first = run_folder.RunFolder(tmp_path, config, {})
    with pytest.raises(ConfigError, match="Another process"):
        run_folder.RunFolder(tmp_path, config, {})
    first.save_result({"data_fingerprint": {}})
    with pytest.raises(ConfigError, match="finished meanwhile"):
        run_folder.RunFolder(tmp_path, config, {})
    assert (tmp_path / "result.json").exists()
    run_folder.RunFolder(tmp_path, config, {}, overwrite=True)
    assert not (tmp_path / "result.json").exists()


def test_a_task_is_trained_on_where_the_whole_run_is_not_finished(tmp_path):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    result = {"data_fingerprint": {}, "trained_with": ["this", "another"]}
    run_folder.RunFolder(tmp_path, config, {}).save_result(result)
    run_folder.RunFolder(tmp_path, config, {})


@pytest.mark.parametrize(
    "of_run",
    [
        lambda folder: {"encoder": folder},
        lambda folder: {"init_adapter": f"{folder}/adapter"},
        lambda folder: {"init_adapter": f"{folder}/snapshots/1000"},
        lambda folder: {
            "method": {"name": "fusion", "adapters": ["other", folder]}
        },
    ],
    ids=["encoder", "init_adapter", "snapshot", "adapters"],
)
def test_what_a_run_starts_from_is_not_overwritten(tmp_path, of_run):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    run_folder.RunFolder(tmp_path, config, {}).save_result(
        {"data_fingerprint": {}}
    )
    ours = resolve.resolve_config(whole_runs.SETTINGS, of_run(str(tmp_path)))
    with pytest.raises(ConfigError, match="would overwrite it"):
        run_folder.RunFolder(tmp_path, ours, {}, overwrite=True)
    assert (tmp_path / "result.json").exists()


def test_a_folder_may_be_named_as_the_encoder_that_is_never_one(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    config = resolve.resolve_config(whole_runs.SETTINGS, {"encoder": "minilm"})
    run_folder.RunFolder(Path("minilm"), config, {}).save_result({})
    assert (tmp_path / "minilm" / "result.json").exists()


def test_a_command_with_overwrite_goes_on_where_it_was_stopped(
    tmp_path, capsys
):
    """Checkpoints of other commands are removed."""
    config = resolve.resolve_config(whole_runs.SETTINGS)
    other = resolve.resolve_config(whole_runs.SETTINGS, {"seed": 5})

    def reopened(config):
        return run_folder.RunFolder(tmp_path, config, {}, True).checkpoint

    _stopped(tmp_path, config, overwrite=True)
    assert reopened(config).step == 1
    assert "resumes from there" in capsys.readouterr().out
    assert reopened(other) is None
    assert not (tmp_path / "checkpoints").exists()
    _stopped(tmp_path, config, overwrite=True, stopped=False)
    assert reopened(config) is None
    _stopped(tmp_path, config)
    assert reopened(config) is None


@pytest.mark.slow
def test_sigterm_with_overwrite(whole, tmp_path, monkeypatch):
    shutil.copytree(whole, tmp_path / "run")
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 7)
        with pytest.raises(Stopped, match="The same command resumes"):
            _train(tmp_path / "run", overwrite=True)
    first = []
    save = run_folder.RunFolder.save_checkpoint
    monkeypatch.setattr(
        run_folder.RunFolder,
        "save_checkpoint",
        lambda self, step, *rest: first.append(step) or save(self, step, *rest),
    )
    _train(tmp_path / "run", overwrite=True)
    assert first[0] == 8
    weights = [
        f / "adapter/adapter.safetensors" for f in (tmp_path / "run", whole)
    ]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_what_a_killed_process_left_is_removed(tmp_path):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    _stopped(tmp_path, config)
    for name in ("adapter", ".adapter.7.partial", ".encoder.7.old.partial"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "README.md").write_text("half of it")
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder" / "adapter_config.json").write_text("{}")
    assert run_folder.RunFolder(tmp_path, config, {}).checkpoint.step == 1
    left = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert left == {"encoder", "checkpoints", "tensorboard"}


def test_a_worker_lost_outside_of_the_steps_is_a_stop(tmp_path, monkeypatch):
    def lose(config, task, **options):
        raise tf.errors.UnavailableError(None, None, "Socket closed\nMore")

    monkeypatch.setattr(training_run, "Experiment", lose)
    with pytest.raises(tf.errors.UnavailableError):
        _train(tmp_path)
    monkeypatch.setattr(workers, "num_workers", lambda strategy: 2)
    with pytest.raises(Stopped, match=r"gone \(Socket closed\)"):
        _train(tmp_path)


@pytest.fixture(name="told")
def _told(monkeypatch):
    """What the worker "chief" has sent to the worker "follower"."""
    told = []

    def from_chief(strategy, content):
        if strategy == "chief":
            told.append(content)
            return content
        return told.pop(0)

    monkeypatch.setattr(workers, "num_workers", lambda strategy: 2)
    monkeypatch.setattr(workers, "is_chief", lambda name: name == "chief")
    monkeypatch.setattr(workers, "broadcast_from_chief", from_chief)
    return told


def test_a_refusal_of_the_chief_is_that_of_every_worker(tmp_path, told):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    other = resolve.resolve_config(whole_runs.SETTINGS, {"seed": 5})
    _stopped(tmp_path, config)
    for worker in ("chief", "follower"):
        with pytest.raises(ConfigError, match="0 there, 5 now"):
            run_folder_of_workers.open_run(worker, tmp_path, other, {})
    assert run_folder_of_workers.open_run(
        "chief", tmp_path, config, {}
    ).checkpoint
    follower = run_folder_of_workers.open_run(
        "follower", Path("nowhere"), config, {}
    )
    assert follower.checkpoint.step == 1 and not told


def test_a_wrong_callback_ends_every_worker(told):
    layer = {"train": {"callbacks": ["nowhere:Nothing"]}}
    config = resolve.resolve_config(whole_runs.SETTINGS, layer)
    for worker in ("chief", "follower"):
        with pytest.raises(ConfigError, match="There is no callback"):
            training_run._watchers(worker, config)
    config = resolve.resolve_config(whole_runs.SETTINGS)
    for worker in ("chief", "follower"):
        assert training_run._watchers(worker, config) == []
    assert not told


@pytest.mark.parametrize("data", [{"train": "same"}, {"train": "other"}])
def test_every_worker_finds_what_the_chief_has_finished(
    tmp_path, monkeypatch, data, told
):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    result = {"data_fingerprint": {"train": "same"}, "seconds": 1.5}
    run_folder.RunFolder(tmp_path, config, {}).save_result(result)
    waits = []
    monkeypatch.setattr(workers, "wait_for_all", waits.append)
    for worker, folder in (("chief", tmp_path), ("follower", Path("nowhere"))):
        arguments = (worker, folder, config, data)
        if data == result["data_fingerprint"]:
            assert run_folder_of_workers.finished_on_chief(*arguments) == result
            assert waits.pop() == worker
        else:
            with pytest.raises(ConfigError, match="finished on other data"):
                run_folder_of_workers.finished_on_chief(*arguments)
    assert not told


def test_a_folder_is_another_runs_once_it_has_trained(tmp_path):
    """A run that failed before its first step does not count."""
    config = resolve.resolve_config(whole_runs.SETTINGS)
    other = resolve.resolve_config(whole_runs.SETTINGS, {"seed": 5})
    # Nobody keeps these: the lock goes with the object.
    run_folder.RunFolder(tmp_path, config, {})
    run_folder.RunFolder(tmp_path, other, {}).log({"step": 1, "loss": 0.5})
    with pytest.raises(ConfigError, match="seed: 5 there, 0 now"):
        run_folder.RunFolder(tmp_path, config, {})
    run_folder.RunFolder(tmp_path, config, {}, overwrite=True)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("checkpoints/theirs.txt", None),
        ("checkpoints/theirs.txt", "name: of another program"),
        ("result.json", None),
        ("notes.txt", "name: of another program"),
    ],
)
def test_a_folder_of_something_else_is_left_alone(tmp_path, name, settings):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    if settings:
        (tmp_path / "config.yaml").write_text(settings)
    theirs = tmp_path / name
    theirs.parent.mkdir(exist_ok=True)
    theirs.write_text("of another program")
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="does not belong to a run"):
            run_folder.RunFolder(tmp_path, config, {}, overwrite)
    assert theirs.exists()


def test_the_folder_of_a_run_that_failed_together_is_a_runs(tmp_path):
    (tmp_path / ".lock").touch()
    (tmp_path / "error.txt").write_text("Too little memory.")
    config = resolve.resolve_config(whole_runs.SETTINGS)
    run_folder.RunFolder(tmp_path, config, {}).close()
    assert not (tmp_path / "error.txt").exists()


def test_settings_that_no_run_stored_are_left_alone(tmp_path):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    path = tmp_path / "config.yaml"
    path.write_text("# My notes.\ntask: demo_sentiment\n")
    for overwrite in (False, True):
        with pytest.raises(ConfigError, match="such as settings.yaml"):
            run_folder.RunFolder(tmp_path, config, {}, overwrite)
    assert path.read_text().startswith("# My notes")
    assert list(tmp_path.iterdir()) == [path]


def _killed_after_a_step(folder, kind, seconds):
    """Resumes a run and kills it; returns its exit status."""
    before = whole_runs.steps_done(folder)
    process = forked_run.start(whole_runs.command(folder))
    deadline = time.monotonic() + 120
    while whole_runs.steps_done(folder) == before and process.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(seconds)
    if process.is_alive():
        # It may end between the two lines.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, kind)
    process.join()
    return process.exitcode


@pytest.mark.slow
def test_twenty_kills_at_random_moments(tmp_path, record_property):
    """Real processes; a checkpoint after each step, so many die writing one."""
    subprocess.run(whole_runs.command(tmp_path / "whole"), check=True)
    folders = (tmp_path / f"killed_{number}" for number in itertools.count())
    folder, kills, moments = next(folders), 0, random.Random(0)
    while kills < 20:
        kind = signal.SIGTERM if kills % 4 == 3 else signal.SIGKILL
        status = _killed_after_a_step(folder, kind, moments.uniform(0, 0.3))
        if status == 0:  # It came to its end before.
            whole_runs.check_equal(folder, tmp_path / "whole")
            folder = next(folders)
            continue
        # After its last step a run has nothing to save, and just ends.
        assert status == -kind or (kind, status) == (signal.SIGTERM, 75)
        kills += 1
    record_property("faults", kills)
    subprocess.run(whole_runs.command(folder), check=True)
    whole_runs.check_equal(folder, tmp_path / "whole")
