"""Tests that damaged files of a run give an error that names them."""

import gzip
import json
import os
import tracemalloc
import types

import numpy as np
import pytest

from tests.runs import whole_runs
from tf_adapters.cli import train
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.common.errors import UserError
from tf_adapters.common.settings_text import load_setting
from tf_adapters.config import resolve
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import predictions
from tf_adapters.runs import run_files
from tf_adapters.runs import run_folder
from tf_adapters.runs import run_log

RESULT = {
    "task": "rte",
    "validation": {"accuracy": 0.5},
    "seconds": 1.5,
    "data_fingerprint": {"train": "f00"},
}
_TRANSFER = {"metric": "f1", "languages": {"de": {"split": "test", "f1": 0.5}}}


def _folder(path):
    path.mkdir()


def _pipe(path):
    os.mkfifo(path)


@pytest.mark.parametrize(
    "content",
    [
        *(b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000),
        *(_folder, _pipe),
        json.dumps(
            {**RESULT, "transfer": {**_TRANSFER, "metric": ["f1"]}}
        ).encode(),
        *(
            json.dumps({**RESULT, key: value}).encode()
            for key, value in {
                "validation": [0.5],
                "test": {"accuracy": "high"},
                "seconds": "long",
                "steps": 10**400,
                "task": 5,
                "commit": ["abc"],
                "versions": 1,
                "data_fingerprint": "f00",
                "tasks": {"rte": {"validation": 1}},
                "transfer": {**_TRANSFER, "metric": "accuracy"},
                "method_report": {"gates": None},
            }.items()
        ),
    ],
    ids=lambda content: getattr(content, "__name__", None),
)
def test_a_damaged_result_is_named(tmp_path, content):
    path = tmp_path / "result.json"
    content(path) if callable(content) else path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"result\.json is damaged: ") as info:
        earlier_runs.read_result(tmp_path)
    assert len(str(info.value).replace(str(path), "")) < 400


def test_a_whole_result_is_read(tmp_path):
    assert earlier_runs.read_result(tmp_path) is None
    result = {**RESULT, "transfer": _TRANSFER, "of_a_plugin": [{}]}
    (tmp_path / "result.json").write_text(json.dumps(result))
    assert earlier_runs.read_result(tmp_path) == result


def test_a_result_that_lost_a_value_is_damaged(tmp_path):
    path = tmp_path / "result.json"
    result = {**RESULT, "best_step": 3, "of_a_plugin": {1: (0.1, None)}}
    run_files.write_result(path, result)
    assert earlier_runs.read_result(tmp_path)["best_step"] == 3
    path.write_text(path.read_text().replace('  "best_step": 3,\n', ""))
    with pytest.raises(ConfigError, match="checksum.* `result_sha256` from it"):
        earlier_runs.read_result(tmp_path)


def test_a_checksum_may_be_removed_by_hand(tmp_path):
    path = tmp_path / "result.json"
    run_files.write_result(path, RESULT)
    edited = json.loads(path.read_text())
    del edited["result_sha256"]
    path.write_text(json.dumps({**edited, "seconds": 2.5}))
    assert earlier_runs.read_result(tmp_path) == {**RESULT, "seconds": 2.5}


def _finished(folder, **values):
    config = resolve.resolve_config(whole_runs.SETTINGS)
    run = run_folder.RunFolder(folder, config, {}, overwrite=True)
    run.save_result(values)
    return config


def test_a_result_without_the_data_it_saw_is_damaged(tmp_path):
    config = _finished(tmp_path, seconds=1.5)
    with pytest.raises(ConfigError, match="it lacks `data_fingerprint`"):
        earlier_runs.finished_result(tmp_path, config, {})


def test_a_merge_is_no_run_of_its_configuration(tmp_path):
    config = _finished(tmp_path, data_fingerprint={}, merged={"how": "mean"})
    with pytest.raises(ConfigError, match="holds a merged adapter"):
        earlier_runs.finished_result(tmp_path, config, {})


def test_a_damaged_result_is_overwritten(tmp_path):
    config = _finished(tmp_path, data_fingerprint={})
    (tmp_path / "result.json").unlink()
    (tmp_path / "result.json").mkdir()
    run_folder.RunFolder(tmp_path, config, {}, overwrite=True)
    assert not (tmp_path / "result.json").exists()


def _stopped(folder):
    """Leaves a run with a line of log and a checkpoint; returns its config."""
    config = resolve.resolve_config(whole_runs.SETTINGS)
    run = run_folder.RunFolder(folder, config, {})
    run.log({"step": 1, "loss": 0.5})
    run.save_checkpoint(1, {"w": np.ones(1)}, {})
    run.close()
    return config


@pytest.mark.parametrize(
    "line",
    [
        *(b"{", b"\xff", b"[]", b"{}", b'{"step": "1"}', b'{"step": -1}'),
        *(b'{"step": true}', b'{"step": 1, "loss": [0.5]}', b""),
        b'{"step": 1, "loss": 1' + b"0" * 400 + b"}",
        b'{"step": 1, "a": {"a": {"a": {"a": {"a": 1}}}}}',
    ],
)
def test_a_run_does_not_go_on_with_a_damaged_log(tmp_path, line):
    config = _stopped(tmp_path)
    log = tmp_path / "metrics.jsonl"
    log.write_bytes(line)
    with pytest.raises(UserError, match=r"metrics\.jsonl.*overwrite") as info:
        run_folder.RunFolder(tmp_path, config, {})
    assert len(str(info.value).replace(str(log), "")) < 400
    assert log.read_bytes() == line


def test_a_line_that_a_full_disk_cut_off_is_dropped(tmp_path):
    config = _stopped(tmp_path)
    log = tmp_path / "metrics.jsonl"
    before = log.read_text()
    log.write_text(before + '{"step": 2, "lo')
    run_folder.RunFolder(tmp_path, config, {}).close()
    assert log.read_text() == before


def test_a_loss_that_tensorboard_cannot_store_is_infinite_there(tmp_path):
    log = run_log.RunLog(tmp_path)
    log.append({"step": 1, "loss": 5e299})
    (line,) = run_files.read_records(tmp_path / "metrics.jsonl")
    assert line["loss"] == 5e299


def _write(folder, head="classification", **rows):
    path = folder / "predictions" / "test.json.gz"
    path.parent.mkdir(exist_ok=True)
    rows = {"target": [0, 1], "predicted": [1, 1], **rows}
    text = json.dumps({"head": head, "rows": rows})
    path.write_bytes(gzip.compress(text.encode()))
    return path


@pytest.mark.parametrize(
    "rows",
    [
        *({"head": None}, {"head": ["classification"]}, {"target": None}),
        *({"target": "01"}, {"target": {"0": 0, "1": 1}}, {"target": [0, "1"]}),
        *({"target": [0, None]}, {"target": [{}, {}]}, {"target": [[0], 1]}),
        *({"target": [[0], [[1]]]}, {"target": [0, 10**400]}, {"more": [1]}),
        {"target": [], "predicted": []},
    ],
    ids=lambda rows: str(rows)[:40],
)
def test_predictions_of_wrong_types_are_damaged(tmp_path, rows):
    _write(tmp_path, **rows)
    with pytest.raises(DataError, match=r"test\.json\.gz is damaged: "):
        predictions.load_predictions(tmp_path, "test")


@pytest.mark.parametrize(
    ("head", "name", "rows"),
    [
        ("classification", "f1", {"target": ["a", "b"]}),
        ("regression", "pearson", {"target": ["a", "b"]}),
        ("multilabel", "micro_f1", {"target": [[0, 1], [1]]}),
        ("tagging", "entity_f1", {"target": [["O"], ["O"]]}),
        ("span", "answer_f1", {"target": [["a"], []]}),
        ("span", "answer_f1", {"target": [["a"], [1]]}),
    ],
)
def test_predictions_of_another_head_are_damaged(tmp_path, head, name, rows):
    _write(tmp_path, head, **rows)
    stored = predictions.load_predictions(tmp_path, "test")
    with pytest.raises(DataError, match=r"test\.json\.gz is damaged: "):
        stored.metrics([name])


def test_predictions_are_a_file_of_gzip_that_is_whole(tmp_path):
    path = _write(tmp_path)
    whole = path.read_bytes()
    for content in (b"", whole[:-9], whole[:20] + b"\xff" * 9 + whole[29:]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"test\.json\.gz is damaged: "):
            predictions.load_predictions(tmp_path, "test")
    path.unlink()
    path.mkdir()
    with pytest.raises(DataError, match=r"test\.json\.gz is damaged: "):
        predictions.load_predictions(tmp_path, "test")


def test_predictions_do_not_unpack_without_end(tmp_path, monkeypatch):
    path = _write(tmp_path)
    path.write_bytes(gzip.compress(b" " * 50_000_000))
    monkeypatch.setattr(predictions, "_LARGEST", 1_000_000)
    tracemalloc.start()
    with pytest.raises(DataError, match="unpacks to more than 1,000,000"):
        predictions.load_predictions(tmp_path, "test")
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


def test_predictions_too_large_to_be_read_are_not_written(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(predictions, "_LARGEST", 30)
    compared = {"target": np.zeros(50, int), "predicted": np.zeros(50, int)}
    head = predictions.heads.Classification(("no", "yes"))
    predictions.save_predictions(tmp_path, "test", head, compared)
    assert predictions.load_predictions(tmp_path, "test") is None
    assert "Predictions of test are not stored" in capsys.readouterr().out


def test_metrics_of_no_finished_run_are_not_computed(tmp_path):
    with pytest.raises(UserError, match="holds no finished run"):
        predictions.recompute_metrics(tmp_path)


def test_a_setting_of_a_damaged_configuration_is_named(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text("method: {name: lora}\ndata: [1]\n")
    assert load_setting(path, "method.name") == "lora"
    assert load_setting(path, "pretrain.steps", default=0) == 0
    for name in ("method.rank", "seed", "data.data_dir", "data", "method"):
        with pytest.raises(ConfigError, match=f"lacks .*`{name}`"):
            load_setting(path, name)
    with pytest.raises(ConfigError):
        resolve.load_config(path)
    path.unlink()
    _pipe(path)
    with pytest.raises(ConfigError, match="Cannot read .*it is not a file"):
        load_setting(path, "seed")


@pytest.mark.parametrize("key", ["seconds", "encoder_weights"])
def test_a_finished_run_whose_result_lacks_a_value_is_refused(tmp_path, key):
    values = {"encoder_weights": 1, "examples_per_second": 1.0}
    values |= {"padding_share": 0.1, "seconds": 1.0, "data_fingerprint": {}}
    del values[key]
    config = _finished(tmp_path, **values)
    options = types.SimpleNamespace(overwrite=False)
    with pytest.raises(ConfigError, match=f"is damaged: it lacks `{key}`"):
        train._is_finished(config, tmp_path, options, {})
