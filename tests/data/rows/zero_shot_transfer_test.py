"""Tests rows of many languages, from files and prepared sets."""

import dataclasses
import json
import types

import numpy as np
import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.config.settings import DataConfig
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.rows import load
from tf_adapters.data.rows import tfds_rows
from tf_adapters.data.rows import zero_shot_transfer
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks import get
from tf_adapters.tasks.languages import in_language

POS, XNLI = get("ud_pos"), get("xnli")


def _write(path, row):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(row) + "\n", encoding="utf-8")


@pytest.fixture
def data(tmp_path):
    for folder, split in (
        ("en_ewt", "test"),
        ("de_gsd", "dev"),
        ("ja", "test"),
        ("ja", "dev"),
        ("fr_a", "test"),
        ("fr_b", "test"),
    ):
        row = {"tokens": [folder], "tags": ["X"]}
        _write(tmp_path / "ud" / folder / f"{split}.jsonl", row)
    return DataConfig(data_dir=str(tmp_path))


def _load(data, *languages):
    return zero_shot_transfer.load_languages(
        POS, dataclasses.replace(data, eval_languages=languages)
    )


def test_the_test_split_comes_first(data):
    found = _load(data, "ja", "de", "en", "fr_b")
    assert {k: split for k, (split, _) in found.items()} == {
        "ja": "test",
        "de": "validation",
        "en": "test",
        "fr_b": "test",
    }
    assert found["en"][1][0]["tokens"] == ["en_ewt"]
    assert not _load(data)


def test_as_many_examples_of_each_language(data, tmp_path):
    words = tmp_path / "ud/en_ewt/test.jsonl"
    with words.open("a") as file:
        file.writelines(words.read_text() * 4)
    assert len(_load(data, "en")["en"][1]) == 5
    data = dataclasses.replace(data, max_test_examples=3)
    assert len(_load(data, "en")["en"][1]) == 3


def test_a_split_without_labels_is_passed_over(data, tmp_path):
    german = tmp_path / "ud/de_gsd"
    for row in ({"tokens": ["a"]}, {"tokens": ["a"], "tags": ["_"]}):
        _write(german / "test.jsonl", row)
        split, rows = _load(data, "de")["de"]
        assert (split, rows[0]["tokens"]) == ("validation", ["de_gsd"])
    (german / "dev.jsonl").unlink()
    with pytest.raises(DataError, match="`de` have no labels"):
        _load(data, "de")


def test_the_labeled_rows_of_a_language_are_kept(data, tmp_path, caplog):
    with (tmp_path / "ud/en_ewt/test.jsonl").open("a") as file:
        file.write('{"tokens": ["a"]}\n')
    split, rows = _load(data, "en")["en"]
    assert split == "test" and [row["label"] for row in rows] == [[16]]
    assert "Task `ud_pos` (en): 1 of 2 test rows have no label" in caplog.text


def test_what_is_missing_or_unclear_is_named(data):
    with pytest.raises(DataError, match="No data of task `ud_pos`.*ud/sw"):
        _load(data, "sw")
    with pytest.raises(DataError, match="fr_a, fr_b. Give one of these"):
        _load(data, "fr")
    with pytest.raises(ValueError, match="`sst2` has one language"):
        zero_shot_transfer.load_languages(
            get("sst2"), dataclasses.replace(data, eval_languages=("de",))
        )


def test_all_languages_that_are_there(data, tmp_path):
    for name in ("fr_a", "fr_b"):
        (tmp_path / "ud" / name / "test.jsonl").unlink()
        (tmp_path / "ud" / name).rmdir()
    assert list(_load(data, "all")) == ["en", "de", "ja"]


def test_a_summary_and_its_table():
    values = {"en": 0.9, "de": 0.7, "ja": 0.2}
    metrics = {k: ("test", {"accuracy": v}) for k, v in values.items()}
    summary = zero_shot_transfer.summarize(POS, metrics)
    assert summary["all"] == pytest.approx(0.6)
    assert summary["target"] == pytest.approx(0.45)
    assert summary["languages"]["de"] == {"split": "test", "accuracy": 0.7}
    text = zero_shot_transfer.transfer_table(POS, summary)
    assert "distant    average    accuracy 0.2000" in text
    assert "over 3 languages; the paper's are over 33" in text


def test_xnli_is_trained_on_mnli(tmp_path):
    row = {"sentence1": "a", "sentence2": "b", "label": "neutral"}
    _write(tmp_path / "mnli" / "train.jsonl", row)
    _write(tmp_path / "xnli" / "en" / "dev.jsonl", {**row, "label": 2})
    train, validation = load.load_train_and_validation(XNLI, tmp_path)
    assert train == [{"premise": "a", "hypothesis": "b", "label": 1}]
    assert validation[0]["label"] == 2


def test_examples_of_tensorflow_datasets_in_a_language(monkeypatch):
    """With its structures for translations and sequences of labels."""
    tfds = pytest.importorskip("tensorflow_datasets")
    features = tfds.features
    monkeypatch.setattr(tfds, "as_numpy", lambda examples: examples)

    def read(task, label, example):
        builder = types.SimpleNamespace(
            info=types.SimpleNamespace(features={task.label_field: label}),
            as_dataset=lambda split, shuffle_files: [example],
        )
        table = tfds_rows._read(task, "test", builder)
        return typed_rows(table, task)

    translations = {
        "premise": {"de": "Ä".encode(), "en": b"A"},
        "hypothesis": {
            "language": np.array([b"de", b"en"], object),
            "translation": np.array(["Ö".encode(), b"B"], object),
        },
        "label": 1,
    }
    label = features.ClassLabel(names=list(XNLI.labels))
    (row,) = read(in_language(XNLI, "de"), label, translations)
    assert row == {"premise": "Ä", "hypothesis": "Ö", "label": 1}
    # The names are in another order than the task's, with one more.
    tags = features.Sequence(
        features.ClassLabel(names=["_", *POS.labels[::-1]])
    )
    words = {
        "tokens": np.array(["Ä".encode(), b"x"], object),
        "upos": np.array([1, 0]),
    }
    (row,) = read(POS, tags, words)
    last = len(POS.labels) - 1
    assert row == {"tokens": ["Ä", "x"], "label": [last, IGNORED]}
