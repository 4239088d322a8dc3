"""Tests the file readers, including line numbers."""

import csv
import io
import itertools
import logging
import os

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.data.rows import files
from tf_adapters.data.rows import prediction_files
from tf_adapters.data.rows import raw_lines
from tf_adapters.tasks.glue import COLA
from tf_adapters.tasks.glue import MNLI
from tf_adapters.tasks.glue import MRPC
from tf_adapters.tasks.glue import QQP
from tf_adapters.tasks.glue import STSB

# All line ends of str.splitlines except the newline.
ODD = "a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i"


def _read(tmp_path, name, content, **kwargs):
    path = tmp_path / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(data)
    return files.read_file(path, **kwargs)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", f'{{"text": "{ODD}", "label": "x"}}\n'),
        ("a.csv", f"text,label\n{ODD},x\n"),
        ("a.tsv", f"text\tlabel\n{ODD}\tx\n"),
    ],
)
def test_a_line_ends_at_a_newline_only(tmp_path, name, content):
    if name == "a.jsonl":  # JSON wants control characters escaped.
        for odd in "\x0b\x0c\x1c\x1d\x1e":
            content = content.replace(odd, f"\\u{ord(odd):04x}")
    table = _read(tmp_path, name, content)
    assert [row for _, row in table.rows] == [{"text": ODD, "label": "x"}]
    assert not table.problems


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl", '{"text": "a\\tb", "label": 1}\r\n\n{"text": "c"}\n\n'),
        ("a.csv", "\ufefftext,label\r\nb,1\r\n\r\nc,2\r\n"),
        ("a.tsv", "\ufefftext\tlabel\r\nb\t1\r\n\r\nc\t2"),
    ],
)
def test_blank_lines_windows_ends_and_byte_order_marks(tmp_path, name, content):
    table = _read(tmp_path, name, content)
    assert not table.problems
    assert [line for line, _ in table.rows] in ([1, 3], [2, 4])
    assert all("\r" not in str(row) for _, row in table.rows)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_in_one_column_an_empty_line_is_an_empty_text(tmp_path, name):
    table = _read(tmp_path, name, "text\none\n\nthree\n\n")
    assert [row["text"] for _, row in table.rows] == ["one", "", "three"]


def test_a_carriage_return_inside_a_line_is_text(tmp_path):
    table = _read(tmp_path, "a.tsv", "text\tlabel\na\rb\tx\r\n")
    assert table.rows == [(2, {"text": "a\rb", "label": "x"})]


def test_csv_quotes_and_tsv_does_not(tmp_path):
    table = _read(tmp_path, "a.csv", 'text,label\n"a, ""b""\nc",1\nd,2\n')
    assert table.rows == [
        (2, {"text": 'a, "b"\nc', "label": "1"}),
        (4, {"text": "d", "label": "2"}),
    ]
    table = _read(tmp_path, "a.tsv", 'text\tlabel\n"a, b\t1\n')
    assert table.rows == [(2, {"text": '"a, b', "label": "1"})]


def test_plain_text_is_a_text_a_line(tmp_path):
    table = _read(tmp_path, "a.txt", "one\n\nthree\n", text_field="text")
    assert [row["text"] for _, row in table.rows] == ["one", "", "three"]


@pytest.mark.parametrize(
    ("name", "content", "problems"),
    [
        (
            "a.jsonl",
            '{"a": 1}\n{"a": \n[1]\n"x"\n',
            {2: "not JSON", 3: "expected an object", 4: "expected an object"},
        ),
        (
            "a.csv",
            "a,b\n1,2\n1\n1,2,3\n",
            {3: "2 columns, received 1", 4: "2 columns, received 3"},
        ),
        ("a.csv", 'a,b\n1,2\n"1"x,2\n3,4\n', {3: "not CSV"}),
        ("a.csv", 'a,b\n1,2\n"1,2\n3,4\n', {3: "not CSV"}),
        ("a.csv", "a,b\n1,2\n1\r,2\n3,4\n", {3: "carriage return outside"}),
        ("a.tsv", "a\tb\n1\t2\n1 2\n", {3: "2 columns, received 1"}),
        ("a.tsv", b"a\tb\n\xe9\t2\n1\t2\n", {2: "not UTF-8 at byte 1"}),
        ("a.jsonl", b'{"a": "\xff"}\n{"a": 1}\n', {1: "not UTF-8"}),
    ],
)
def test_problems_carry_their_line(tmp_path, name, content, problems):
    table = _read(tmp_path, name, content)
    assert sorted(line for line, _ in table.problems) == sorted(problems)
    for line, what in table.problems:
        assert problems[line] in what
    with pytest.raises(DataError, match=rf"{name}:\n  line \d"):
        table.raise_problems()


def test_carriage_returns_do_not_split_rows_of_predictions(tmp_path):
    texts = ["good\rfilm", "dull\r", "a, b", 'a "c"', "x\ny", "plain"]
    path = tmp_path / "out.csv"
    rows = [{"text": text, "label": "no"} for text in texts]
    prediction_files.write_predictions(path, rows, COLA)
    assert b"\nplain,no\n" in path.read_bytes()
    found = [row["text"] for _, row in files.read_file(path).rows]
    assert found == texts
    with path.open(newline="") as file:
        assert [row["text"] for row in csv.DictReader(file)] == texts


def test_the_rows_next_to_a_problem_are_kept(tmp_path):
    table = _read(tmp_path, "a.csv", 'a,b\n1,2\n"1"x,2\n3,4\n')
    assert [line for line, _ in table.rows] == [2, 4]


def test_an_error_shows_ten_problems_and_counts_the_rest(tmp_path):
    table = _read(tmp_path, "a.jsonl", "no\n" * 13)
    with pytest.raises(DataError) as error:
        table.raise_problems()
    message = str(error.value)
    assert message.count("  line ") == 10
    assert message.startswith("13 malformed rows in ")
    assert "and 3 more" in message


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", "x", "Expected a name that ends in one of: .jsonl"),
        ("a.txt", "x", "one text per line and no labels"),
        ("a.jsonl", "", "holds no rows"),
        ("a.csv", "text,label\n", "holds no rows"),
    ],
)
def test_unusable_files_are_refused(tmp_path, name, content, message):
    with pytest.raises(DataError, match=message):
        _read(tmp_path, name, content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *itertools.product(
            ["a.csv", "a.tsv", "a.jsonl", "a.txt"], ["", "\n\n", "\ufeff"]
        ),
        # Only a header line.
        ("a.csv", "text\n"),
        ("a.tsv", "text\n"),
    ],
)
def test_files_without_rows_are_named(tmp_path, name, content):
    with pytest.raises(DataError, match=rf"{name} holds no rows"):
        _read(tmp_path, name, content, text_field="text")


@pytest.mark.parametrize("content", ["", "\n", "index\tsentence\n"])
def test_glue_files_without_rows_are_named(tmp_path, content):
    (tmp_path / "test.tsv").write_text(content)
    with pytest.raises(DataError, match=r"test\.tsv holds no rows"):
        files.read_glue_file(tmp_path / "test.tsv", COLA)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_line_without_end_is_not_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr(raw_lines, "_LONGEST", 20)
    whole = "text\n" + "x" * 20 + "\n"
    with pytest.raises(DataError, match=f"{name}: line 2 has more than 20"):
        _read(tmp_path, name, whole)
    with pytest.raises(DataError, match="standard input: line 1 has more"):
        list(files.open_stream(io.BytesIO(b"x" * 30), "standard input").rows)


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.conll", "a.json"])
def test_a_pipe_is_no_file(tmp_path, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match=f"{name}: it is not a file"):
        files.read_file(tmp_path / name)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match="Cannot read .*gone.csv: No"):
        files.read_file(tmp_path / "gone.csv")


def _read_glue(tmp_path, task, name, *lines):
    path = tmp_path / name
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    table = files.read_glue_file(path, task)
    return [row for _, row in table.rows], table


def test_glue_cola_has_a_header_in_its_test_file_only(tmp_path):
    line = ("gj04", "0", "*", 'He "said.')
    rows, _ = _read_glue(tmp_path, COLA, "train.tsv", line, line)
    assert rows == [{"label": "0", "sentence": 'He "said.'}] * 2
    rows, _ = _read_glue(
        tmp_path, COLA, "test.tsv", ("index", "sentence"), ("0", "Bill sang.")
    )
    assert rows == [{"sentence": "Bill sang."}]


def test_glue_columns_become_the_tasks_fields(tmp_path):
    rows, _ = _read_glue(
        tmp_path,
        MRPC,
        "dev.tsv",
        ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String"),
        ("1", "7", "8", "One.", "Two."),
    )
    assert rows == [{"label": "1", "sentence1": "One.", "sentence2": "Two."}]
    rows, _ = _read_glue(
        tmp_path,
        MNLI,
        "dev_matched.tsv",
        ("index", "sentence1", "sentence2", "label1", "gold_label"),
        ("0", "It rains.", "It is wet.", "neutral", "entailment"),
    )
    assert rows == [
        {
            "premise": "It rains.",
            "hypothesis": "It is wet.",
            "label": "entailment",
        }
    ]
    rows, _ = _read_glue(
        tmp_path,
        STSB,
        "train.tsv",
        ("index", "genre", "sentence1", "sentence2", "score"),
        ("0", "news", "One.", "Two.", "3.800"),
    )
    assert rows[0]["label"] == "3.800"


def test_only_qqp_skips_broken_lines_and_says_so(tmp_path, caplog):
    header = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
    lines = (header, ("1", "2", "3", "a", "b", "1"), ("2", "broken"))
    with caplog.at_level(logging.WARNING):
        rows, table = _read_glue(tmp_path, QQP, "train.tsv", *lines)
    assert rows == [{"question1": "a", "question2": "b", "label": "1"}]
    assert not table.problems
    assert "Left out 1 broken lines" in caplog.text
    assert "first line 3" in caplog.text
    _, table = _read_glue(
        tmp_path, STSB, "dev.tsv", ("sentence1", "sentence2"), ("one",)
    )
    assert table.problems == [(2, "expected 2 columns, received 1")]


def test_a_stream_of_json_lines_may_have_the_alias_of_a_field():
    lines = b'{"text": "fine"}\n'
    stream = io.BytesIO(lines)
    table = files.open_stream(stream, "standard input", "sentence", "text")
    assert [row for _, row in table.rows] == [{"text": "fine"}]


def test_a_stream_of_other_json_lines_is_warned_of(caplog):
    stream = io.BytesIO(b'{"review": "good"}\n')
    table = files.open_stream(stream, "standard input", "sentence", "text")
    assert list(table.rows) == [(1, {"sentence": '{"review": "good"}'})]
    assert "JSON object without `sentence`, so each line is" in caplog.text


def test_a_stream_of_texts_may_begin_with_a_quoted_text():
    stream = io.BytesIO(b'"This sentence is great"\n')
    table = files.open_stream(stream, "standard input", "sentence")
    texts = [row["sentence"] for _, row in table.rows]
    assert texts == ['"This sentence is great"']
