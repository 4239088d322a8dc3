"""Tests that checkpoints survive damaged and missing files."""

import json

import numpy as np
import pytest

from tf_adapters.runs import checkpoints
from tf_adapters.runs.checkpoints import Checkpoint


def _checkpoint(step):
    generator = np.random.default_rng(step)
    tensors = {
        "a/kernel": generator.normal(size=(3, 4)).astype("float32"),
        "iterations": np.array(step, "int64"),
    }
    return Checkpoint(step, tensors, {"best": {"f1": 0.1 * step}})


def _save(folder, *steps):
    for step in steps:
        checkpoints.save_checkpoint(folder, _checkpoint(step))


def _is(checkpoint, step):
    wanted = _checkpoint(step)
    assert (checkpoint.step, checkpoint.state) == (step, wanted.state)
    assert checkpoint.tensors.keys() == wanted.tensors.keys()
    for name, array in wanted.tensors.items():
        np.testing.assert_array_equal(checkpoint.tensors[name], array)
        assert checkpoint.tensors[name].dtype == array.dtype


def test_the_newest_is_read_and_two_are_kept(tmp_path):
    _save(tmp_path, 5, 10, 100)
    _is(checkpoints.newest_checkpoint(tmp_path), 100)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "00000010",
        "00000100",
    ]


def test_half_written_ones_do_not_take_the_place_of_whole_ones(tmp_path):
    _save(tmp_path, 110, 120)
    # A process was killed while it wrote one, and the other was damaged since.
    (tmp_path / "00000110" / "state.json").unlink()
    _truncate(tmp_path / "00000120" / "tensors.safetensors", 0.5)
    _save(tmp_path, 90)
    _save(tmp_path, 100)
    _is(checkpoints.newest_checkpoint(tmp_path), 100)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "00000090",
        "00000100",
    ]


def test_nothing_was_saved_yet(tmp_path):
    assert checkpoints.newest_checkpoint(tmp_path / "not_there") is None
    (tmp_path / "notes.txt").write_text("mine")
    assert checkpoints.newest_checkpoint(tmp_path) is None


def test_a_step_may_be_saved_again(tmp_path):
    _save(tmp_path, 5, 5)
    _is(checkpoints.newest_checkpoint(tmp_path), 5)


def _truncate(path, share):
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


def _flip(path):
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def _change(path, **values):
    state = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**state, **values}))


def _rename(path, old, new):
    text = (path / "state.json").read_text()
    assert old in text
    (path / "state.json").write_text(text.replace(old, new))


def _as_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: (path / "state.json").unlink(),
        lambda path: (path / "tensors.safetensors").unlink(),
        lambda path: _truncate(path / "state.json", 0.5),
        lambda path: _truncate(path / "state.json", 0),
        lambda path: _truncate(path / "tensors.safetensors", 0.5),
        lambda path: _flip(path / "tensors.safetensors"),
        lambda path: (path / "state.json").write_text("[]"),
        lambda path: _change(path, step=9),
        lambda path: _change(path, state={}),
        lambda path: _change(path, state={"best": {"f1": 1.1}}),
        lambda path: _change(path, state_sha256="0" * 64),
        lambda path: _rename(path, "state_sha256", "state_sha255"),
        lambda path: (path / "state.json").write_text("{}"),
        lambda path: _as_folder(path / "state.json"),
        lambda path: _as_folder(path / "tensors.safetensors"),
        lambda path: (path / "state.json").write_bytes(b"\xff\xfe"),
    ],
    ids=[
        "no state",
        "no tensors",
        "half a state",
        "empty state",
        "half of the tensors",
        "a flipped bit",
        "another JSON",
        "another step",
        "no state of the run",
        "another state of the run",
        "has changed since it was written",
        "a hash of another name",
        "no values",
        "a folder for the state",
        "a folder for the tensors",
        "no text",
    ],
)
def test_a_damaged_one_falls_back_to_the_one_before(tmp_path, caplog, damage):
    _save(tmp_path, 5, 10)
    damage(tmp_path / "00000010")
    _is(checkpoints.newest_checkpoint(tmp_path), 5)
    assert "00000010 is incomplete or damaged" in caplog.text
    # The run comes by there again.
    _save(tmp_path, 10)
    _is(checkpoints.newest_checkpoint(tmp_path), 10)


def _as_before_hashes(path):
    """Converts a checkpoint to the format of version 0.1.0."""
    state = json.loads((path / "state.json").read_text())
    state = {key: state[key] for key in ("step", "sha256", "state")}
    (path / "state.json").write_text(json.dumps(state))


def test_checkpoints_without_a_hash_of_the_state_are_read(tmp_path):
    _save(tmp_path, 5, 10)
    _as_before_hashes(tmp_path / "00000010")
    _is(checkpoints.newest_checkpoint(tmp_path), 10)


def test_a_checkpoint_without_a_hash_is_that_of_its_folder(tmp_path, caplog):
    _save(tmp_path, 5, 10)
    _as_before_hashes(tmp_path / "00000010")
    _change(tmp_path / "00000010", step=11)
    _is(checkpoints.newest_checkpoint(tmp_path), 5)
    assert "00000010 is incomplete or damaged" in caplog.text


def test_a_checkpoint_lacks_nothing_that_a_run_needs(tmp_path, caplog):
    _save(tmp_path, 5)
    assert checkpoints.newest_checkpoint(tmp_path, {"best": dict}).step == 5
    for needs in ({"best": int}, {"history": list}):
        assert checkpoints.newest_checkpoint(tmp_path, needs) is None
    assert "the state of the run lacks `history`" in caplog.text


def test_no_bit_of_the_state_changes_unseen(tmp_path, caplog):
    """Flips bits: the previous checkpoint or the same state is read."""
    _save(tmp_path, 5, 10)
    path = tmp_path / "00000010" / "state.json"
    whole = path.read_bytes()
    found = set()
    for place in range(len(whole)):
        content = bytearray(whole)
        content[place] ^= 1 << place % 8
        path.write_bytes(content)
        checkpoint = checkpoints.newest_checkpoint(tmp_path)
        _is(checkpoint, checkpoint.step)
        found.add(checkpoint.step)
    assert 5 in found and found <= {5, 10}
