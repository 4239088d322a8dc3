"""Tests reading and writing of SQuAD's JSON."""

import json
import types

import numpy as np
import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import load
from tf_adapters.data.rows import prediction_files
from tf_adapters.data.rows import tfds_rows
from tf_adapters.data.rows.table import Table
from tf_adapters.data.rows.typed_rows import typed_rows
from tf_adapters.tasks import get

SQUAD = get("squad")
ANSWERS = [{"text": "é\u2028b", "answer_start": 2}]
CONTEXT = "a é\u2028b."
ROW = {"id": "q1", "question": "Who?", "context": CONTEXT, "label": ANSWERS}


def _content(*questions):
    paragraphs = [{"context": CONTEXT, "qas": list(questions)}]
    article = {"title": "t", "paragraphs": paragraphs}
    return {"version": "1.1", "data": [article]}


def _question(**changes):
    question = {"id": "q1", "question": "Who?", "answers": ANSWERS}
    return {**question, **changes}


def _write(folder, name, content):
    (folder / "squad").mkdir(exist_ok=True)
    text = json.dumps(content, ensure_ascii=False, indent=1)
    (folder / "squad" / name).write_text(text, encoding="utf-8")
    return folder / "squad" / name


@pytest.mark.parametrize(
    ("split", "name"),
    [("train", "train-v1.1.json"), ("validation", "dev-v1.1.json")],
)
def test_the_official_files(tmp_path, split, name):
    _write(tmp_path, name, _content(_question()))
    assert load.load_split(SQUAD, split, tmp_path) == [ROW]


def test_lines_of_json_too(tmp_path):
    (tmp_path / "squad").mkdir()
    line = {**ROW, "answers": {"text": ["é\u2028b"], "answer_start": [2]}}
    (tmp_path / "squad" / "dev.jsonl").write_text(
        json.dumps(line), encoding="utf-8"
    )
    assert load.load_split(SQUAD, "validation", tmp_path) == [ROW]


def test_questions_to_answer_need_no_answers(tmp_path):
    path = _write(
        tmp_path, "new.json", _content({"question": "Who?"}, _question(id="z"))
    )
    first, second = load.load_file(SQUAD, path)
    assert (first["id"], second["id"]) == ("1", "z")
    assert first["label"] is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"questions": []}, r"not SQuAD's format.*KeyError: 'data'"),
        ([], "not SQuAD's format"),
        (_content(_question(answers=[])), "question 1: .*has no label"),
        (_content(_question(answers=["x"])), "question 1: answers must be"),
        (_content(_question(), {"id": "2"}), "question 2: .*`question` is mi"),
        (
            _content(
                _question(answers={"text": ["x", "y"], "answer_start": [1]})
            ),
            "question 1: answers must have as many `answer_start` as `text`",
        ),
        (
            _content(_question(answers={"text": "x", "answer_start": 1})),
            "question 1: answers must have as many .* received 'x' and 1",
        ),
        (
            _content(_question(answers=[{"text": "x", "answer_start": "2"}])),
            "answers must be",
        ),
    ],
)
def test_malformed_files_are_explained(tmp_path, content, message):
    _write(tmp_path, "train-v1.1.json", content)
    with pytest.raises(DataError, match=message):
        load.load_split(SQUAD, "train", tmp_path)


def test_predictions_in_the_format_of_the_evaluation(tmp_path):
    path = tmp_path / "out" / "predictions.json"
    rows = [{"id": "q1", "answer": "é"}, {"id": "q2", "answer": ""}]
    prediction_files.check_output_file(path, SQUAD)
    assert prediction_files.write_predictions(path, rows, SQUAD) == 2
    assert json.loads(path.read_text("utf-8")) == {"q1": "é", "q2": ""}


def test_two_answers_to_one_id_are_refused(tmp_path):
    """One of them would be lost silently."""
    path = tmp_path / "predictions.json"
    with pytest.raises(ValueError, match="Two questions have the id 'q1'"):
        prediction_files.write_predictions(
            path, 2 * [{"id": "q1", "answer": "a"}], SQUAD
        )
    assert not path.exists()


def test_questions_without_an_id_have_that_of_their_line():
    without = {**ROW, "answers": ROW["label"]}
    for own in ({}, {"id": None}):
        fields = {k: v for k, v in without.items() if k not in ("id", "label")}
        table = Table("a", [(7, {**fields, **own})])
        (row,) = typed_rows(table, SQUAD)
        assert row["id"] == "7"


def test_examples_of_tensorflow_datasets(monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    monkeypatch.setattr(tfds, "as_numpy", lambda examples: examples)
    example = {
        "id": b"q1",
        "question": b"Who?",
        "context": ROW["context"].encode(),
        "answers": {
            "text": np.array(["é\u2028b".encode()], object),
            "answer_start": np.array([2], "int32"),
        },
    }
    builder = types.SimpleNamespace(
        info=types.SimpleNamespace(features={"answers": None}),
        as_dataset=lambda split, shuffle_files: [example],
    )
    table = tfds_rows._read(SQUAD, "train", builder)
    assert typed_rows(table, SQUAD) == [ROW]
