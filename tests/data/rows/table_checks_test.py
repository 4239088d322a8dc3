"""Tests the classes of a table, and the message for each fault."""

import json

import pytest

from tf_adapters.common.errors import DataError
from tf_adapters.config.settings import DataConfig
from tf_adapters.data.rows import load
from tf_adapters.data.rows import table_checks
from tf_adapters.tasks.table_task import task_of_table


def _task(path, **data):
    return task_of_table("t", DataConfig(file=str(path), **data))


def _labels(folder, labels, **data):
    path = folder / "t.csv"
    rows = "".join(f"text {i},{label}\n" for i, label in enumerate(labels))
    path.write_text("text,label\n" + rows, encoding="utf-8")
    return table_checks.resolve_table(_task(path, **data)).labels


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["10", "9", "2"], ("2", "9", "10")),
        (["4.0", "1.0"], ("1.0", "4.0")),
        (["b", "Ä", "a"], ("a", "b", "Ä")),
        (["1", "good"], ("1", "good")),
        ([str(i) for i in range(100)], tuple(map(str, range(100)))),
    ],
)
def test_classes_are_named_as_they_are_written(tmp_path, values, expected):
    assert _labels(tmp_path, values * 6) == expected


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (
            ["1", "2.5"] * 9,
            "such as 2.5, which are not classes. Add --head=reg",
        ),
        (["1", "0", "nan"] * 9, "has 'nan' among numbers. Correct these"),
        (range(101), "101 different numbers, more than the 100"),
        ([f"t{i}" for i in range(120)], "name it with --label="),
        ("abcdefghijkl", "12 different values in 12 rows, such as 'a'"),
        (range(12), "12 different values in 12 rows, such as '0'"),
        (["a"] * 12, "has the same label in all rows, 'a'"),
        (["a", "b"], "has 2 rows, some of which are held out"),
        (["a", "b", ""] * 9, "line 4: field `label` has no label"),
    ],
)
def test_labels_that_are_no_classes(tmp_path, labels, sentence):
    with pytest.raises(DataError) as caught:
        _labels(tmp_path, labels)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "t.csv is empty"),
        ("text,label\n", "holds no rows"),
        (
            "Text,label\na,b\n",
            "`Text`, `label`: name one with --text=. Did you",
        ),
        ("text,stars\na,b\n", "no column `label`. Its columns are `text`"),
        ("text,label\n,b\n", "line 2: field `text` has no text"),
        ("text,label\na,b,c\n", "line 2: expected 2 columns, received 3"),
    ],
)
def test_a_file_that_is_no_table_of_texts(tmp_path, content, sentence):
    path = tmp_path / "t.csv"
    path.write_text(content)
    with pytest.raises(DataError) as caught:
        table_checks.resolve_table(_task(path))
    assert sentence in str(caught.value)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_what_spreadsheets_write_is_read(tmp_path, mark, delimiter, encoding):
    if mark and encoding != "utf-8":
        return
    lines = ["text,label", *(f"für {i},{'añ'[i % 2]}" for i in range(20))]
    text = mark + "\n".join(lines).replace(",", delimiter)
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode(encoding))
    task = table_checks.resolve_table(_task(path))
    assert task.labels == ("a", "ñ")
    train, validation = load.load_train_and_validation(task)
    assert len(train) == 18 and train[0]["text"].startswith("für ")
    assert sorted(row["label"] for row in validation) == [0, 1]


@pytest.mark.parametrize(
    ("header", "row", "fields"),
    [
        ("text;A, b", "fine {};{}", ("text", "A, b")),
        ('"Text, all";label', "fine, {};{}", ("Text, all", "label")),
        ("a;b,label", "fine; {},{}", ("a;b", "label")),
        # Few rows have as many columns with the comma.
        ("text\tA, b", "a {}\t{}\nb, c\ty", ("text", "A, b")),
    ],
)
def test_a_header_may_hold_other_delimiters(tmp_path, header, row, fields):
    path = tmp_path / "t.csv"
    rows = [row.format(i, "xy"[i % 2]) for i in range(20)]
    path.write_text("\n".join([header, *rows]))
    task = _task(path, text=(fields[0],), label=fields[1])
    assert table_checks.resolve_table(task).labels == ("x", "y")


def test_a_header_that_is_not_csv_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('"text"a,label\n' + "a,x\nb,y\n" * 9)
    with pytest.raises(DataError, match="line 1: not CSV"):
        table_checks.resolve_table(_task(path))


def test_a_tsv_that_was_quoted_is_pointed_out(tmp_path, caplog):
    path = tmp_path / "t.tsv"
    rows = ['he said "fine"\tx', '"fine"\ty'] * 9
    path.write_text("\n".join(["text\tlabel", *rows]))
    table_checks.resolve_table(_task(path))
    assert not caplog.text
    path.write_text(path.read_text() + '\n"he said ""fine"""\tx\n')
    table_checks.resolve_table(_task(path))
    assert "line 20, has a text in quotes" in caplog.text
    assert "save the table as .csv" in caplog.text


def test_ids_in_place_of_names_are_refused(tmp_path):
    """A user who has not named the classes does not know their order."""
    for name, labels in (("t", ["World", "Sports"]), ("test", [0, -1])):
        lines = [f"a {i},{labels[i % 2]}" for i in range(20)]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["text,label", *lines]))
    task = _task(tmp_path / "t.csv", test_file=str(path))
    with pytest.raises(DataError) as caught:
        table_checks.resolve_table(task)
    assert "has the label '0', but the classes of" in str(caught.value)
    path.write_text(path.read_text().replace(",0", ",Sports"))
    assert table_checks.resolve_table(task).labels == ("Sports", "World")


@pytest.mark.parametrize(
    ("train", "test"),
    [((1, 2), (3, 1)), (("x", "2023"), (7, "x")), (("true", "false"), (0, 1))],
)
def test_labels_that_cannot_be_confused_are_checked_with_the_rows(
    tmp_path, train, test
):
    for name, labels in (("t", train), ("test", test)):
        lines = [f"a {i},{labels[i % 2]}" for i in range(20)]
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join(["text,label", *lines]))
    task = _task(tmp_path / "t.csv", test_file=str(path))
    labels = table_checks.resolve_table(task).labels
    assert labels == tuple(sorted(map(str, train)))


def test_a_broken_byte_in_utf_8_is_not_taken_for_latin_1(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("text,label\nfür,a\n".encode() + b"f\xfcr,b\n")
    with pytest.raises(DataError, match="line 3: not UTF-8 at byte 2"):
        table_checks.resolve_table(_task(path))


def test_utf_16_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("text,label\na,b\n", encoding="utf-16")
    with pytest.raises(DataError, match="is in UTF-16"):
        table_checks.resolve_table(_task(tmp_path / "t.csv"))


def test_spellings_of_one_label_are_pointed_out(tmp_path, caplog):
    assert len(_labels(tmp_path, ["good", "Good", "bad"] * 6)) == 3
    assert "'good' (6) and 'Good' (6) are different classes" in caplog.text


def test_spellings_of_one_number_are_pointed_out(tmp_path, caplog):
    assert len(_labels(tmp_path, ["1", "0", "1.0", "2"] * 6)) == 4
    assert "'1' (6) and '1.0' (6) are different classes" in caplog.text
    assert "'0'" not in caplog.text


def test_the_advice_for_floats_ends(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"text": f"a {i}", "label": float(i % 2)} for i in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError, match=r"such as 0.0, .*`.astype\(int\)`"):
        table_checks.resolve_table(_task(path))


def test_a_label_in_other_capitals_has_a_hint(tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("text,label\na,Good\n")
    path = tmp_path / "t.csv"
    path.write_text("text,label\na,good\nb,bad\n")
    task = _task(path, validation_file=str(other))
    task = table_checks.resolve_table(task)
    with pytest.raises(DataError, match="Did you mean 'good'"):
        load.load_train_and_validation(task)


def test_json_lines_are_a_table(tmp_path):
    path = tmp_path / "t.jsonl"
    rows = [{"a": "x", "b": "y", "n": i % 3} for i in range(12)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    task = table_checks.resolve_table(_task(path, text=("a", "b"), label="n"))
    assert task.labels == ("0", "1", "2")
    assert load.load_split(task, "train")[1] == {"a": "x", "b": "y", "label": 1}
