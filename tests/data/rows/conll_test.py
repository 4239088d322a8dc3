"""Tests reading and writing of sentences in columns."""

import json

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.rows import load
from tf_adapters.data.rows import prediction_files
from tf_adapters.tasks import get

POS, NER = get("ud_pos"), get("wikiann")
CONLLU = """# sent_id = 1
# text = I can't stop.
1\tI\ti\tPRON\t_\t_\t3\t_\t_\t_
2-3\tcan't\t_\t_\t_\t_\t_\t_\t_\t_
2\tca\tcan\tAUX\t_\t_\t_\t_\t_\t_
3\tn't\tnot\tPART\t_\t_\t_\t_\t_\t_
3.1\tgo\tgo\tVERB\t_\t_\t_\t_\t_\t_
4\tNew York\t_\tPROPN\t_\t_\t_\t_\t_\t_
5\t#\t_\t_\t_\t_\t_\t_\t_\t_

# sent_id = 2
1\té\t_\tX\t_\t_\t_\t_\t_\t_
"""
WORDS = ["I", "ca", "n't", "New York", "#"]
TAGS = ["PRON", "AUX", "PART", "PROPN"]


def _write(folder, name, text):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


def test_conllu_gives_words_and_their_tags(tmp_path):
    _write(tmp_path / "ud/en_ewt", "train.conllu", CONLLU)
    first, second = load.load_split(POS, "train", tmp_path)
    ids = [POS.labels.index(tag) for tag in TAGS]
    assert first == {"tokens": WORDS, "label": [*ids, IGNORED]}
    assert second["tokens"] == ["é"]


def test_an_archive_next_to_a_treebank_is_ignored(tmp_path):
    _write(tmp_path / "ud", "en_ewt.zip", "")
    with pytest.raises(DataError, match="No data of task `ud_pos`"):
        load.load_split(POS, "train", tmp_path)
    _write(tmp_path / "ud/en_ewt", "train.conllu", CONLLU)
    assert len(load.load_split(POS, "train", tmp_path)) == 2


@pytest.mark.parametrize("blank", [" ", "\t", " \t "])
def test_columns_hold_the_word_first_and_the_tag_last(tmp_path, blank):
    lines = ["-DOCSTART- -X- O O", "", "U.N. NNP B-NP B-ORG", "a DT I-NP O"]
    lines += ["", "", "# NN I-NP O"]
    text = "\n".join(line.replace(" ", blank) for line in lines)
    _write(tmp_path / "panx/en", "dev.conll", text)
    first, second = load.load_split(NER, "validation", tmp_path)
    assert first == {"tokens": ["U.N.", "a"], "label": [3, 0]}
    assert second == {"tokens": ["#"], "label": [0]}


def test_words_alone_and_lines_of_words_are_to_be_predicted(tmp_path):
    for name, text in (
        ("a.conll", "it\nrains\n\nyes\n"),
        ("a.txt", "it rains\nyes\n"),
        ("a.jsonl", '{"tokens": ["it", "rains"]}\n{"tokens": "yes"}\n'),
    ):
        rows = load.load_file(NER, _write(tmp_path, name, text))
        assert [row["tokens"] for row in rows] == [["it", "rains"], ["yes"]]
        assert {row["label"] for row in rows} == {None}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "train.conllu",
            "1a\tI\ti\tO\t_\t_\t_\t_\t_\t_\n",
            "line 1: unknown ID '1a'",
        ),
        ("train.conllu", "1\tI\tPRON\n", "line 1: expected 10 columns"),
        ("train.conll", "a O\nb\n", "line 2: expected a word and a tag"),
        ("train.conll", "a O\n\nb B-MISC\n", "line 3: unknown label 'B-MISC'"),
        (
            "train.jsonl",
            '{"tokens": ["a", "b"], "tags": ["O"]}\n',
            "2 words have 1 tags",
        ),
        (
            "train.jsonl",
            '{"tokens": ["a"], "tags": [7]}\n',
            "unknown label '7'",
        ),
        ("train.jsonl", '{"tokens": ["a"], "tags": 1}\n', "list of tags"),
        ("train.jsonl", '{"tokens": ["a"]}\n', "has no label"),
    ],
)
def test_malformed_files_are_explained(tmp_path, name, text, message):
    _write(tmp_path / "panx/en", name, text)
    with pytest.raises(DataError, match=message):
        load.load_split(NER, "train", tmp_path)


@pytest.mark.parametrize("ending", [".conllu", ".conll", ".jsonl"])
def test_what_was_written_can_be_read_again(tmp_path, ending):
    rows = [
        {"tokens": ["I", "ca", "n't"], "tags": ["PRON", "AUX", "PART"]},
        {"tokens": ["é"], "tags": ["X"]},
        {"tokens": ["New York", "10\u00a0000"], "tags": ["PROPN", "NUM"]},
    ]
    path = tmp_path / "new" / f"out{ending}"
    assert prediction_files.write_predictions(path, rows, POS) == 3
    loaded = load.load_file(POS, path, with_labels=True)
    assert [row["tokens"] for row in loaded] == [r["tokens"] for r in rows]
    tags = [[POS.labels[i] for i in row["label"]] for row in loaded]
    assert tags == [row["tags"] for row in rows]


@pytest.mark.parametrize("ending", [".conllu", ".conll"])
@pytest.mark.parametrize("word", ["", " ", "a\tb", "a\nb"])
def test_words_that_no_column_holds_are_refused(tmp_path, ending, word):
    rows = [{"tokens": ["a", word], "tags": ["X", "X"]}]
    with pytest.raises(ValueError, match="cannot be written in a column"):
        prediction_files.write_predictions(tmp_path / f"out{ending}", rows, POS)
    assert not (tmp_path / f"out{ending}").exists()


def test_other_tasks_have_no_columns(tmp_path):
    with pytest.raises(ValueError, match="kind tagging, and `sst2` is a"):
        prediction_files.check_output_file(tmp_path / "out.conll", get("sst2"))
    row = {"sentence": "é", "label": "positive"}
    prediction_files.write_predictions(tmp_path / "out", [row], get("sst2"))
    assert json.loads((tmp_path / "out").read_text("utf-8")) == row
