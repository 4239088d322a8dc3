"""Tests a user's own task from YAML, and its errors."""

import pytest

from tf_adapters.data.rows import load
from tf_adapters.data.rows.sources import find_source
from tf_adapters.tasks import load_task_file

YAML = """\
name: tickets
text_fields: [subject, body]
labels: [billing, bug, other]
metrics: [macro_f1, accuracy]
files: {train: data/train.csv, validation: data/dev.jsonl}
"""
_OF_CLASSES = """\
labels: [billing, bug, other]
metrics: [macro_f1, accuracy]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data/train.csv").write_text(
        'subject,body,label\n"Refund, please",Charged twice.,billing\n'
        "Crash,It stops.,bug\n"
    )
    (tmp_path / "data/dev.jsonl").write_text(
        '{"subject": "Hello", "body": "Just that.", "label": 2}\n'
    )
    return tmp_path


def _write(folder, text):
    path = folder / "my.yaml"
    path.write_text(text)
    return path


def test_a_task_needs_no_code(folder, monkeypatch):
    path = _write(folder, YAML)
    monkeypatch.chdir(folder.parent)  # Files are relative to the YAML file.
    task = load_task_file(path)
    assert task.labels == ("billing", "bug", "other")
    assert task.metrics == ("macro_f1", "accuracy")
    assert task.head == "classification"
    assert load.load_split(task, "train") == [
        {"subject": "Refund, please", "body": "Charged twice.", "label": 0},
        {"subject": "Crash", "body": "It stops.", "label": 1},
    ]
    assert load.load_split(task, "validation")[0]["label"] == 2
    assert not find_source(task, "test").is_there
    with pytest.raises(
        load.DataError, match="Unknown split of task `tickets`, `test`"
    ):
        load.load_split(task, "test")


def test_the_declaration_is_read_without_the_data(folder):
    path = _write(folder, YAML)
    (folder / "data/dev.jsonl").unlink()
    task = load_task_file(path, check_files=False)
    assert task.name == "tickets"
    assert task.files["train"] == str(folder / "data/train.csv")
    with pytest.raises(ValueError, match="does not exist"):
        load_task_file(path)


def test_a_regression_of_ones_own(folder):
    (folder / "r.tsv").write_text("text\tscore\nfine\t0.5\n")
    path = _write(
        folder,
        "name: r\ntext_fields: text\nhead: regression\nlabel_field: score\n"
        "label_range: [0, 1]\nfiles: {train: r.tsv, validation: r.tsv}\n",
    )
    task = load_task_file(path)
    assert task.metrics == ("spearman", "pearson")
    assert task.label_range == (0.0, 1.0)
    rows = load.load_split(task, "train")
    assert rows == [{"text": "fine", "label": 0.5}]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("labels:", "lables:", "`lables`. Did you mean `labels`"),
        ("name: tickets\n", "", "lacks the key `name`"),
        ("name: tickets", "name: 7", "`name` must be text"),
        ("name: t", f"name: {'t' * 100}", "at most 100 bytes.*106"),
        ("name: t", f"name: {'ü' * 50}", "at most 100 bytes.*106"),
        ("billing, bug, other", "no, yes", "in quotes.*Received: False"),
        ("labels: [billing, bug, other]\n", "", "needs `labels`"),
        ("billing, bug, other", "bug, bug", "each named once.*'bug', 'bug'"),
        ("macro_f1", "macrof1", "Did you mean `macro_f1`"),
        ("validation:", "valid:", "`valid`. Did you mean `validation`"),
        ("dev.jsonl", "gone.jsonl", "does not exist. Looked for: .*gone"),
        ("data/dev.jsonl", r'"a\0b"', "the path of a file, which has no NUL"),
        ("[macro_f1, accuracy]", "{a: b}", "`metrics` must be a list"),
        ("name: tickets", "head: clasification\nname: t", "Did you mean"),
        (_OF_CLASSES, "head: regression\nlabel_range: [1, 0]\n", "two numbers"),
        (YAML, "- a\n", "keys and values"),
        (YAML, "a: [", "is not YAML"),
    ],
)
def test_mistakes_are_named(folder, old, new, message):
    assert old in YAML
    path = _write(folder, YAML.replace(old, new))
    with pytest.raises(ValueError, match=message):
        load_task_file(path)


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("name: tickets", "label_range: [0, 1]\nname: t", "label_range"),
        ("name: tickets", "blank: _\nname: t", "blank"),
    ],
)
def test_keys_without_an_effect_are_named(folder, caplog, old, new, key):
    load_task_file(_write(folder, YAML.replace(old, new)))
    assert f"`{key}` has no effect on a" in caplog.text


def test_a_missing_task_file_is_named(tmp_path):
    with pytest.raises(ValueError, match="Cannot read the task file .*no.yaml"):
        load_task_file(tmp_path / "no.yaml")


@pytest.mark.parametrize(
    ("head", "fields", "label_field"),
    [
        ("tagging", "tokens\nlabels: [DET, NOUN]", "tags"),
        ("span", "[question, context]", "answers"),
        ("choice", "[question, choices]", "label"),
    ],
)
def test_labels_are_where_the_formats_have_them(
    folder, head, fields, label_field
):
    text = f"name: own\ntext_fields: {fields}\nhead: {head}\n"
    files = "files: {train: a.conllu, validation: a.conllu}\n"
    path = _write(folder, text + files)
    task = load_task_file(path, check_files=False)
    assert task.label_field == label_field


@pytest.mark.parametrize("head", ["mlm", "[tagging]"])
def test_other_heads_are_refused_in_a_sentence(folder, head):
    text = f"name: own\ntext_fields: text\nhead: {head}\n"
    files = "files: {train: a.csv, validation: a.csv}\n"
    with pytest.raises(ValueError, match="`head`"):
        load_task_file(_write(folder, text + files), check_files=False)
