"""Runs that train vectors, and texts that runs encode, from the shell."""

import csv
import io
import json
import types

import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests.cli import subcommands
from tf_adapters import tasks
from tf_adapters.cli import encode
from tf_adapters.common.errors import ConfigError

pytestmark = pytest.mark.integration

TEXTS = ["the film is good", "it is bad", "the plot is good", "bad film"]
SMALL = (f"--encoder={commands.ENCODER}", "--max_length=16", "--epochs=1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a folder with a table of scored triples, and a run of each head."""
    folder = tmp_path_factory.mktemp("vectors")
    with open(folder / "pairs.csv", "w", encoding="utf-8", newline="") as file:
        rows = [
            (text, TEXTS[(i * i) % 4], f"{text} {i}", i % 6)
            for i, text in enumerate(TEXTS * 6)
        ]
        csv.writer(file).writerows([("a", "b", "c", "score"), *rows])
    (folder / "texts.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    data = f"--data={folder / 'pairs.csv'}"
    for head, columns in {
        "sentence_vector": ("--text=a,b", "--label=score"),
        "sentence_ranking": ("--text=a,b,c",),
        "regression": ("--text=a", "--label=score"),
    }.items():
        flags = (*columns, *SMALL, f"--model_dir={folder / head}")
        status = subcommands.run("train", data, f"--head={head}", *flags)
        assert status == 0
    return folder


@pytest.mark.parametrize("head", ["sentence_vector", "sentence_ranking"])
def test_a_run_encodes_as_its_export(folder, head, tmp_path):
    output = tmp_path / "new" / "x.npy"
    flags = (f"--input={folder}/texts.txt", f"--output={output}")
    assert subcommands.run("encode", folder / head, *flags) == 0
    vectors = np.load(output)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert subcommands.run("export", folder / head) == 0
    (path,) = (folder / head / "export" / "pairs").glob("[0-9]*")
    function = tf.saved_model.load(str(path)).signatures["encode"]
    answer = function(text=tf.constant(TEXTS))["vector"]
    np.testing.assert_allclose(vectors, answer, atol=1e-5)
    result = json.loads((folder / head / "result.json").read_text())
    metric = "spearman" if head == "sentence_vector" else "mrr"
    assert -1 <= result["validation"][metric] <= 1


def test_columns_and_pipes_are_encoded(folder, tmp_path, monkeypatch):
    output = tmp_path / "x.npy"
    run = folder / "sentence_vector"
    table = (f"--input={folder}/pairs.csv", f"--output={output}")
    assert subcommands.run("encode", run, *table) == 0
    pairs = np.load(output)
    assert pairs.shape[:2] == (24, 2)
    assert subcommands.run("encode", run, *table, "--column=b") == 0
    np.testing.assert_allclose(np.load(output), pairs[:, 1], atol=1e-5)
    piped = io.BytesIO("\n".join(TEXTS).encode())
    stream = types.SimpleNamespace(buffer=piped)
    monkeypatch.setattr("sys.stdin", stream)
    flags = ("--input=-", f"--output={output}")
    assert subcommands.run("encode", run, *flags) == 0
    np.testing.assert_allclose(np.load(output), pairs[:4, 0], atol=1e-5)
    rows = [{"a": a, "b": TEXTS[(i * i) % 4]} for i, a in enumerate(TEXTS)]
    alone = [{"text": text} for text in TEXTS]
    for lines, expected in ((rows, pairs[:4]), (alone, pairs[:4, 0])):
        stream.buffer = io.BytesIO("\n".join(map(json.dumps, lines)).encode())
        assert subcommands.run("encode", run, *flags) == 0
        np.testing.assert_allclose(np.load(output), expected, atol=1e-5)


def test_a_column_of_texts_is_not_a_field_of_lists():
    task = tasks.get("ud_pos")
    options = types.SimpleNamespace(input="rows.jsonl", column=None)
    assert encode._task(task, options, has_lines=False) == task
    options.column = "body"
    with pytest.raises(ConfigError, match="`tokens`, which holds lists"):
        encode._task(task, options, has_lines=False)


def test_rows_without_one_vector_each_are_refused(tmp_path, capsys):
    context, question = "the film is good", "the film"
    row = {"id": "1", "question": question, "context": context}
    row["answers"] = [{"text": "film", "answer_start": 4}]
    commands.write_rows(tmp_path / "train.jsonl", [row] * 4)
    (tmp_path / "task.yaml").write_text(
        "{name: answers, text_fields: [question, context], head: span, "
        "files: {train: train.jsonl, validation: train.jsonl}}"
    )
    task = f"--task_file={tmp_path / 'task.yaml'}"
    flags = (task, "--method=head_only", f"--model_dir={tmp_path / 'run'}")
    assert subcommands.run("train", *flags, *SMALL) == 0
    # As many inputs as rows: two of the second one.
    rows = [
        {"question": question, "context": text} for text in ("", context * 3)
    ]
    given = commands.write_rows(tmp_path / "rows.jsonl", rows)
    flags = (f"--input={given}", f"--output={tmp_path / 'x.npy'}")
    assert subcommands.run("encode", tmp_path / "run", *flags) == 1
    assert "or empty ones as none" in capsys.readouterr().err
    assert not (tmp_path / "x.npy").exists()


def test_any_run_encodes(folder, tmp_path):
    output = tmp_path / "x.npy"
    run = folder / "regression"
    flags = (f"--input={folder}/texts.txt", f"--output={output}")
    assert subcommands.run("encode", run, *flags) == 0
    vectors = np.load(output)
    assert vectors.shape[0] == 4 and np.ptp(vectors, axis=0).max() > 0.01
    flags = (f"--input={folder}/pairs.csv", f"--output={output}")
    assert subcommands.run("encode", run, *flags, "--column=score") == 0
    assert np.load(output).shape[0] == 24


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ((), "--mode=encode needs --input"),
        (("--input=texts.txt",), "a file whose name ends in .npy"),
        (("--input=x.txt", "--output=x.csv"), "Received: 'x.csv'"),
    ],
)
def test_a_wrong_call_is_one_sentence(folder, capsys, flags, said):
    assert subcommands.run("encode", folder / "regression", *flags) == 1
    assert said in capsys.readouterr().err
