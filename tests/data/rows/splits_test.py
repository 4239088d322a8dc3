"""Tests which of a task's data a configuration reads."""

import dataclasses
import json

import pytest

from tf_adapters.config import resolve
from tf_adapters.config import task as config_task
from tf_adapters.data.rows import load
from tf_adapters.data.rows import splits
from tf_adapters.data.rows import tfds_rows
from tf_adapters.data.rows.table import Table
from tf_adapters.runs import task_data
from tf_adapters.tasks import get
from tf_adapters.tasks.task import Task

MNLI = [
    (i, {"premise": f"a {i}", "hypothesis": "b", "label": "neutral"})
    for i in range(6)
]


@pytest.fixture
def read(monkeypatch):
    """Replaces prepared sets of TensorFlow Datasets, and records reads."""
    names = []

    def read_prepared(task, split, path):
        names.append(split)
        return Table(split, list(MNLI))

    def find_prepared(task, folder):
        return "mnli" if folder == tfds_rows.default_directory() else None

    monkeypatch.setattr(tfds_rows, "find_prepared", find_prepared)
    monkeypatch.setattr(tfds_rows, "read_prepared", read_prepared)
    return names


def _config(**settings):
    return resolve.combine({"task": "mnli"}, settings)


def _rows(config, task=None):
    return splits.load_rows(task or get("mnli"), config.data, config.seed)


def test_an_unlabeled_test_set_is_not_read(read):
    config = _config()
    rows = _rows(config)
    assert set(rows) == {"train", "validation", "validation_mismatched"}
    assert read == ["train", "validation_matched", "validation_mismatched"]


def test_a_labeled_test_set_is_read(read):
    task = dataclasses.replace(
        get("mnli"),
        splits={**get("mnli").splits, "test": "test"},
        unlabeled_splits={},
    )
    rows = _rows(_config(), task)
    assert len(rows["test"]) == 6 and "test" in read
    config = _config(data={"max_test_examples": 2})
    assert len(_rows(config, task)["test"]) == 2


def test_a_local_test_file_may_be_labeled_where_the_public_one_is_not(
    tmp_path,
):
    (tmp_path / "mnli").mkdir()
    lines = "".join(json.dumps(row) + "\n" for _, row in MNLI)
    for split in ("train", "dev", "test"):
        (tmp_path / "mnli" / f"{split}.jsonl").write_text(lines)
    config = _config(data={"data_dir": str(tmp_path)})
    assert set(_rows(config)) == {
        "train",
        "validation",
        "test",
    }


def test_whether_data_are_there_is_said_without_reading(read, tmp_path):
    task_data.check_data_exists(_config())
    assert not read
    with pytest.raises(load.DataError, match="No data of task `mnli` in"):
        task_data.check_data_exists(_config(data={"data_dir": str(tmp_path)}))


def test_a_declared_task_needs_no_data(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "name: tickets\ntext_fields: [text]\nlabels: [bug, other]\n"
        "files: {train: gone.csv, validation: gone.csv}\n"
    )
    layer = {"data": {"task_file": str(tmp_path / "mine.yaml")}}
    config = resolve.combine(layer)
    assert config_task.declared_task(config).labels == ("bug", "other")
    for function in (task_data.check_data_exists, task_data.get_task):
        with pytest.raises(ValueError, match="`train` does not exist"):
            function(config)


def test_all_seeds_validate_on_the_same_examples(read):
    def validation(seed):
        settings = {"max_validation_examples": 3}
        config = _config(seed=seed, data=settings)
        return _rows(config)["validation"]

    assert validation(0) == validation(1)
    assert len(validation(0)) == 3


def test_fewer_validation_examples_than_those_of_low_resource(monkeypatch):
    rows = [{"sentence": f"a {i}", "label": 0} for i in range(1005)]
    monkeypatch.setattr(
        load, "load_train_and_validation", lambda *_: (rows, rows[:2])
    )
    data = {"low_resource": 4, "max_validation_examples": 3}
    found = splits.read_rows(get("sst2"), _config(data=data).data)
    sizes = {split: len(some) for split, some in found.items()}
    assert sizes == {"train": 4, "validation": 3, "test": 2}


def test_a_part_of_the_training_set(read):
    whole = _rows(_config())["train"]
    config = _config(data={"train_fraction": 0.5})
    part = _rows(config)["train"]
    assert len(part) == round(len(whole) / 2)
    assert all(row in whole for row in part)
    config = _config(data={"train_fraction": 1e-6})
    assert len(_rows(config)["train"]) == 1


def test_a_task_has_a_number_of_its_own(read):
    def train(**own):
        data = {"max_train_examples": 3, "train_examples_of": own}
        config = _config(data=data)
        return _rows(config)["train"]

    assert len(train(mnli=2, rte=1)) == 2
    assert len(train(rte=1)) == 3


def test_another_metric_selects():
    config = _config(task="mrpc", train={"select_by": "accuracy"})
    found = config_task.declared_task(config).metrics
    assert found[0] == "accuracy" and set(found) == set(get("mrpc").metrics)
    config = _config(task="mrpc", train={"select_by": "spearman"})
    with pytest.raises(ValueError, match="can be measured by accuracy"):
        config_task.declared_task(config)


def _load(tmp_path, task, **splits_of_rows):
    """Loads a task whose files hold these rows."""
    files = {}
    for split, rows in splits_of_rows.items():
        files[split] = str(tmp_path / f"{split}.jsonl")
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (tmp_path / f"{split}.jsonl").write_text(lines)
    task = dataclasses.replace(
        task, files=files, splits={split: split for split in files}
    )
    return _rows(_config(), task)


TEXTS = Task("mine", ("text",), labels=("no", "yes"))
WORDS = Task("tags", ("text",), labels=("N", "V"), head="tagging")
TRAIN = [{"text": f"a{i}", "label": "yes"} for i in range(4)]
TAGGED = [{"text": f"a{i} b", "label": "N V"} for i in range(4)]


@pytest.mark.parametrize(
    ("task", "train"),
    [(TEXTS, TRAIN), (WORDS, TAGGED)],
    ids=["texts", "words"],
)
def test_the_labeled_rows_of_a_test_split_are_kept(
    tmp_path, caplog, task, train
):
    row = train[0] | {"text": "c d"}
    test = [row, {"text": "e f"}, row | {"text": "g h"}]
    rows = _load(tmp_path, task, train=train, validation=train, test=test)
    assert [r["text"] for r in rows["test"]] == [
        ["c", "d"] if task is WORDS else "c d",
        ["g", "h"] if task is WORDS else "g h",
    ]
    assert "1 of 3 test rows have no label and are left out" in caplog.text
    assert "the first is row 1" in caplog.text


@pytest.mark.parametrize("label", [{}, {"label": None}, {"label": "_ _"}])
def test_a_test_file_without_labels_is_not_evaluated_and_that_is_said(
    tmp_path, caplog, label
):
    test = [{"text": "c d", **label}]
    rows = _load(tmp_path, WORDS, train=TAGGED, validation=TAGGED, test=test)
    assert set(rows) == {"train", "validation"}
    assert "no row of the test split has a label" in caplog.text


def test_the_other_splits_need_every_label(tmp_path):
    for split in ("train", "validation"):
        some = {"train": TRAIN, "validation": TRAIN}
        some[split] = [*TRAIN, {"text": "c"}]
        with pytest.raises(load.DataError, match="line 5: field `label` has"):
            _load(tmp_path, TEXTS, **some)


def test_texts_of_hidden_tokens_need_no_label(tmp_path):
    task = Task("texts", ("text",), head="masked_lm")
    texts = [{"text": "a"}, {"text": "b", "label": "c"}]
    rows = _load(tmp_path, task, train=texts, validation=texts, test=texts)
    assert len(rows["test"]) == 2


@pytest.mark.parametrize("split", ["train", "validation"])
def test_words_without_a_single_tag_are_refused(tmp_path, split):
    some = {"train": TAGGED, "validation": TAGGED}
    some[split] = [{"text": "c d", "label": "_ _"}] * 2
    with pytest.raises(load.DataError, match=f"{split} rows have no label"):
        _load(tmp_path, WORDS, **some)
