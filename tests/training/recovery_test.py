"""A run that was stopped, at any moment and in any way, ends as if never."""

import os
import random
import signal
import subprocess
import time

import pytest

from tests.training import whole_runs
from tf_adapters import config as config_lib
from tf_adapters.data import splits
from tf_adapters.training import experiment
from tf_adapters.training import recovery
from tf_adapters.training import runs
from tf_adapters.training.loop import Stopped


def _train(folder, seconds=0.0, **layer):
    config = config_lib.resolve(
        whole_runs.SETTINGS, {"train": {"checkpoint_seconds": seconds}}, layer
    )
    task = splits.get_task(config)
    rows = splits.load_rows(config, task)
    return experiment.train(config, task, rows, folder)[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that nothing interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    result = _train(folder, seconds=1000.0)
    assert result["steps"] == 27 and result["best_step"] > 5
    assert not (folder / "checkpoints").exists()
    return folder


def _stop_at(monkeypatch, step):
    """Lets SIGTERM come while a step is at work."""
    after_loop = recovery.Recovery.after_loop

    def with_signal(self, loop, checks):
        if loop.step == step:
            signal.raise_signal(signal.SIGTERM)
        after_loop(self, loop, checks)

    monkeypatch.setattr(recovery.Recovery, "after_loop", with_signal)


# After the first step; between two checks; at a validation; within the last
# epoch, where a best one was seen.
@pytest.mark.slow
@pytest.mark.parametrize("step", [1, 7, 18, 23])
def test_sigterm(whole, tmp_path, monkeypatch, step):
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patch:
        _stop_at(patch, step)
        with pytest.raises(Stopped, match=f"after step {step}. The same"):
            _train(tmp_path, seconds=1000.0)
    assert not (tmp_path / "result.json").exists()
    assert signal.getsignal(signal.SIGTERM) == before
    _train(tmp_path, seconds=1000.0)
    whole_runs.check_equal(tmp_path, whole)


@pytest.mark.slow
def test_a_crash_goes_back_to_the_last_checkpoint(whole, tmp_path, monkeypatch):
    """Steps, logs and best weights after it are made again, alike."""
    save = runs.RunFolder.save_checkpoint

    def save_some(self, step, tensors, state):
        if step <= 12:
            save(self, step, tensors, state)
        if step == 21:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(runs.RunFolder, "save_checkpoint", save_some)
        with pytest.raises(OSError, match="No space"):
            _train(tmp_path)
    logged = (tmp_path / "metrics.jsonl").read_text().count("\n")
    _train(tmp_path)
    whole_runs.check_equal(tmp_path, whole)
    assert logged > 3


def test_other_data_are_noticed(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        _stop_at(patch, 2)
        with pytest.raises(Stopped):
            _train(tmp_path)
    load = splits.load_rows

    def changed(config, task):
        rows = load(config, task)
        rows["train"][0] = {**rows["train"][0], "sentence": "another text"}
        return rows

    monkeypatch.setattr(splits, "load_rows", changed)
    with pytest.raises(config_lib.ConfigError, match="data have changed"):
        _train(tmp_path)


def test_two_runs_in_one_folder(tmp_path):
    config = config_lib.resolve(whole_runs.SETTINGS)
    first = runs.RunFolder(tmp_path, config, {})
    with pytest.raises(config_lib.ConfigError, match="Another process"):
        runs.RunFolder(tmp_path, config, {})
    first.save_result({})
    runs.RunFolder(tmp_path, config, {})


def test_a_folder_is_another_runs_once_it_has_trained(tmp_path):
    """Not where a wrong setting ended the first one before its first step."""
    config = config_lib.resolve(whole_runs.SETTINGS)
    other = config_lib.resolve(whole_runs.SETTINGS, {"seed": 5})
    # Nobody keeps these: the lock goes with the object.
    runs.RunFolder(tmp_path, config, {})
    runs.RunFolder(tmp_path, other, {}).log({"step": 1, "loss": 0.5})
    with pytest.raises(config_lib.ConfigError, match="seed: 5 there, 0 now"):
        runs.RunFolder(tmp_path, config, {})
    runs.RunFolder(tmp_path, config, {}, overwrite=True)


@pytest.mark.slow
def test_twenty_kills_at_random_moments(tmp_path, record_property):
    """Real processes; a checkpoint after each step, so many die writing one."""
    subprocess.run(whole_runs.command(tmp_path / "whole"), check=True)
    folder, moments = tmp_path / "killed", random.Random(0)
    for number in range(20):
        kind = signal.SIGTERM if number % 4 == 3 else signal.SIGKILL
        before = whole_runs.steps_done(folder)
        process = subprocess.Popen(
            whole_runs.command(folder), start_new_session=True
        )
        deadline = time.monotonic() + 120
        while (
            whole_runs.steps_done(folder) == before and process.poll() is None
        ):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.3))
        if process.poll() is None:
            os.killpg(process.pid, kind)
        status = process.wait()
        if status == 0:
            break
        # After its last step a run has nothing to save, and just ends.
        assert status == -kind or (kind, status) == (signal.SIGTERM, 75)
    assert number >= 5
    record_property("faults", number + 1)
    subprocess.run(whole_runs.command(folder), check=True)
    whole_runs.check_equal(folder, tmp_path / "whole")
