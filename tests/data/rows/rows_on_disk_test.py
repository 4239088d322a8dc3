"""Rows on disk are the rows."""

import json

import pytest

from tf_adapters import tasks
from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import load
from tf_adapters.data.rows import rows_on_disk
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import split_checks

ROWS = [
    {"sentence": f'Zeile {i}\n\u2028\U0001f600\\"', "label": i % 2}
    for i in range(30)
] + [{"sentence": "", "label": None}, {"sentence": ["a"], "label": 0.1}]


@pytest.fixture
def spooled(tmp_path):
    return rows_on_disk.keep_on_disk(tmp_path / "new")(iter(ROWS))


def test_rows_are_those_that_came(spooled, tmp_path):
    assert len(spooled) == len(ROWS)
    assert list(spooled) == ROWS
    assert spooled[3] == ROWS[3] and spooled[-1] == ROWS[-1]
    assert spooled[5:9] == ROWS[5:9]
    assert list((tmp_path / "new").iterdir()) == []  # It has no name.
    with pytest.raises(IndexError):
        spooled[len(ROWS)]


def test_draws_are_those_of_a_list(spooled):
    assert list(sampling.subsample(spooled, 7, 1)) == sampling.subsample(
        ROWS, 7, 1
    )
    assert list(sampling.subsample(spooled, 99, 1)) == ROWS
    halves = sampling.hold_out(spooled, 5, 2)
    for found, wanted in zip(
        halves, sampling.hold_out(ROWS, 5, 2), strict=True
    ):
        assert list(found) == wanted
        assert isinstance(found, rows_on_disk.RowsOnDisk)
    assert sampling.fingerprint(spooled) == sampling.fingerprint(ROWS)


def test_no_rows(tmp_path):
    assert list(rows_on_disk.keep_on_disk(tmp_path)([])) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--cache_dir=.*file"):
        rows_on_disk.keep_on_disk(tmp_path / "file")(ROWS)


def _write(folder, split, rows):
    (folder / "sst2").mkdir(exist_ok=True)
    path = folder / "sst2" / f"{split}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_split_is_the_same_from_disk(tmp_path, caplog):
    rows = [{"sentence": f"a {i}", "label": i % 2} for i in range(9)]
    _write(tmp_path, "train", rows)
    _write(tmp_path, "dev", [rows[2], {"sentence": "b", "label": 1}])
    task = tasks.get("sst2")
    found = load.load_train_and_validation(
        task, tmp_path, spool_dir=tmp_path / "cache"
    )
    wanted = load.load_train_and_validation(task, tmp_path)
    assert isinstance(found[0], rows_on_disk.RowsOnDisk)
    assert [list(rows) for rows in found] == list(wanted)
    splits = dict(zip(("train", "validation"), found, strict=True))
    split_checks.warn_of_overlap(splits, task)
    assert "1 of 2 validation rows" in caplog.text


def test_problems_are_those_of_a_list(tmp_path):
    _write(tmp_path, "train", [{"sentence": "a", "label": 7}, {"label": 1}])
    task = tasks.get("sst2")
    messages = []
    for folder in (None, tmp_path / "cache"):
        with pytest.raises(DataError) as error:
            load.load_split(task, "train", tmp_path, folder)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "line 1" in messages[0] and "line 2" in messages[0]
