"""Tests the choice of a source for rows, and the rows of each."""

import json

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import generated
from tf_adapters.data.rows import load
from tf_adapters.data.rows.sources import find_source
from tf_adapters.tasks import TASKS
from tf_adapters.tasks import get

GENERATED = [t for t in TASKS.values() if t.source.startswith("builtin:")]


def _write(folder, name, *rows):
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / name).write_text("".join(lines))


# Local field names as real files have them, each next to the task's own.
LOCAL = {
    "sst2": ({"sentence": "a"}, 1, {"sentence": "a"}),
    "mnli": (
        {"sentence1": "a", "sentence2": "b"},
        "neutral",
        {"premise": "a", "hypothesis": "b"},
    ),
    "qqp": (
        {"sentence1": "a", "sentence2": "b"},
        1,
        {"question1": "a", "question2": "b"},
    ),
    "qnli": (
        {"question": "a", "sentence": "b"},
        "not_entailment",
        {"question": "a", "sentence": "b"},
    ),
    "boolq": (
        {"sentence1": "a", "sentence2": "b"},
        1,
        {"passage": "a", "question": "b"},
    ),
    "cb": (
        {"sentence1": "a", "sentence2": "b"},
        "contradiction",
        {"premise": "a", "hypothesis": "b"},
    ),
    "agnews": (
        {"title": None, "sentence": "b"},
        "Sports",
        {"title": "", "description": "b"},
    ),
    "imdb": ({"sentence": "a", "id": "7"}, 1, {"text": "a"}),
    "hyperpartisan": (
        {"sentence": "a", "title": "t"},
        "true",
        {"sentence": "a"},
    ),
    "chemprot": ({"text": "a"}, "AGONIST", {"sentence": "a"}),
}


@pytest.mark.parametrize("name", list(LOCAL))
def test_local_field_names_become_the_tasks(tmp_path, name):
    fields, label, expected = LOCAL[name]
    _write(tmp_path / name, "train.jsonl", {**fields, "label": label})
    (row,) = load.load_split(get(name), "train", str(tmp_path))
    assert row == {**expected, "label": 1}


TEXT_TASKS = sorted(
    task.name
    for task in TASKS.values()
    if task.head in ("classification", "regression")
    and task not in GENERATED
    and not task.folder
)


@pytest.mark.parametrize("name", TEXT_TASKS)
def test_every_other_task_loads_local_files(tmp_path, name):
    task = TASKS[name]
    labels = task.labels or (("0.5",) if task.head == "regression" else "xy")
    lines = [(*task.text_fields, "label")]
    lines += [(*("w" for _ in task.text_fields), label) for label in labels]
    (tmp_path / name).mkdir()
    text = "".join("\t".join(line) + "\n" for line in lines)
    (tmp_path / name / "validation.tsv").write_text(text)
    (tmp_path / name / "train.tsv").write_text(text)
    rows = load.load_split(task, "validation", tmp_path)
    assert set(rows[0]) == {*task.text_fields, "label"}
    ids = [row["label"] for row in rows]
    assert ids == (
        [0.5] if task.head == "regression" else list(range(len(ids)))
    )


def test_validation_may_be_called_dev(tmp_path):
    row = {"sentence": "a", "label": 0}
    _write(tmp_path / "a/sst2", "dev.jsonl", row)
    _write(tmp_path / "b/sst2", "validation.jsonl", row, row)
    assert len(load.load_split(get("sst2"), "validation", tmp_path / "a")) == 1
    assert len(load.load_split(get("sst2"), "validation", tmp_path / "b")) == 2


def test_mismatched_validation_of_mnli_is_reached(tmp_path):
    row = {"premise": "a", "hypothesis": "b"}
    folder = tmp_path / "mnli"
    _write(folder, "dev_matched.jsonl", {**row, "label": 0})
    _write(folder, "validation_mismatched.jsonl", {**row, "label": 2})
    for split, label in (("validation", 0), ("validation_mismatched", 2)):
        (loaded,) = load.load_split(get("mnli"), split, tmp_path)
        assert loaded["label"] == label


def test_glue_folders_are_read(tmp_path):
    folder = tmp_path / "MNLI"
    folder.mkdir()
    header = "index\tsentence1\tsentence2\tgold_label\n"
    (folder / "dev_matched.tsv").write_text(header + "0\ta\tb\tneutral\n")
    (folder / "dev_mismatched.tsv").write_text(header + "0\tc\td\tentailment\n")
    (folder / "test_matched.tsv").write_text(
        "index\tsentence1\tsentence2\n0\te\tf\n"
    )
    loaded = {
        split: load.load_split(get("mnli"), split, tmp_path)
        for split in ("validation", "validation_mismatched", "test")
    }
    assert loaded == {
        "validation": [{"premise": "a", "hypothesis": "b", "label": 1}],
        "validation_mismatched": [
            {"premise": "c", "hypothesis": "d", "label": 0}
        ],
        "test": [{"premise": "e", "hypothesis": "f", "label": None}],
    }


def test_a_test_split_may_lack_labels_and_the_others_may_not(tmp_path):
    for split in ("train", "dev", "test"):
        _write(tmp_path / "rte", f"{split}.jsonl", LOCAL["cb"][0])
    rows = load.load_split(get("rte"), "test", tmp_path)
    assert rows == [{"sentence1": "a", "sentence2": "b", "label": None}]
    for split in ("train", "validation"):
        with pytest.raises(DataError, match="line 1: .*`label` has no label"):
            load.load_split(get("rte"), split, tmp_path)


def test_a_malformed_row_names_file_and_line(tmp_path):
    good = {"sentence": "a", "label": "negative"}
    bad = {"sentence": "a", "label": "negativ"}
    _write(tmp_path / "sst2", "train.jsonl", good, bad)
    with pytest.raises(
        DataError, match=r"sst2.train.jsonl:\n  line 2: unknown"
    ):
        load.load_split(get("sst2"), "train", tmp_path)


@pytest.mark.parametrize("task", GENERATED, ids=lambda task: task.name)
def test_builtin_texts_need_no_folder(task, tmp_path):
    rows = load.load_split(task, "validation", tmp_path)
    name = task.source.removeprefix("builtin:")
    assert rows == generated.read_rows(name, "validation")
    assert {row["label"] for row in rows} == set(range(len(task.labels)))
    assert find_source(task, "test").is_there


def test_class_names_may_come_from_the_training_file(tmp_path):
    task = get("cf_emotion")
    folder = tmp_path / "cf_emotion"
    texts = [{"text": "w", "label": name} for name in ("joy", "anger", "love")]
    _write(folder, "train.jsonl", *texts, texts[0])
    _write(folder, "dev.jsonl", texts[2])
    resolved = load.resolve_labels(task, tmp_path)
    assert resolved.labels == ("anger", "joy", "love")
    assert load.load_split(task, "validation", tmp_path)[0]["label"] == 2
    assert load.resolve_labels(get("sst2"), tmp_path) is get("sst2")
    _write(folder, "train.jsonl", texts[0])
    with pytest.raises(DataError, match="at least two. Received: .'joy'"):
        load.resolve_labels(task, tmp_path)


def test_rows_are_held_out_where_there_is_no_validation_split(tmp_path):
    rows = [{"text": f"{i}", "label": i % 2} for i in range(50)]
    _write(tmp_path / "imdb", "train.jsonl", *rows)
    task = get("imdb")
    assert not find_source(task, "validation", tmp_path).is_there
    train, held_out = load.load_train_and_validation(task, tmp_path)
    assert (len(train), len(held_out)) == (45, 5)
    assert {row["text"] for row in train + held_out} == {
        row["text"] for row in rows
    }
    _write(tmp_path / "imdb", "dev.jsonl", *rows[:3])
    train, validation = load.load_train_and_validation(task, tmp_path)
    assert (len(train), len(validation)) == (50, 3)


@pytest.mark.parametrize(
    ("name", "split", "message"),
    [
        (
            "cola",
            "train",
            r"No data of task `cola` in .*cola/\{train,dev,test\}",
        ),
        ("cola", "train", "or GLUE's own .*CoLA/train.tsv"),
        ("cola", "train", "glue/cola as TensorFlow Datasets makes it"),
        ("rte", "validation", "no validation split in .*Found: train.jsonl"),
        ("rte", "trian", "`trian`. Did you mean `train`"),
    ],
)
def test_missing_data_is_explained(tmp_path, name, split, message):
    _write(tmp_path / "rte", "train.jsonl", {})
    with pytest.raises(DataError, match=message):
        load.load_split(get(name), split, tmp_path)


def test_a_task_of_local_files_only_asks_for_the_folder():
    with pytest.raises(DataError, match="`sick` is not in TensorFlow Datasets"):
        load.load_split(get("sick"), "train")


def test_files_to_predict(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    rows = load.load_file(get("sst2"), tmp_path / "a.txt")
    assert rows == [
        {"sentence": "one", "label": None},
        {"sentence": "two", "label": None},
    ]
    (tmp_path / "a.csv").write_text("sentence,label\none,positive\ntwo,\n")
    task = get("sst2")
    rows = load.load_file(task, tmp_path / "a.csv", with_labels=True)
    assert [row["label"] for row in rows] == [1, None]
    with pytest.raises(DataError, match="one text per line and no labels"):
        load.load_file(get("rte"), tmp_path / "a.txt")
