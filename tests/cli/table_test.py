"""Tests training and prediction on a table of texts and labels."""

import csv
import io
import json
import types

import pytest

from tests import commands
from tests.cli import subcommands
from tf_adapters.common import settings_text
from tf_adapters.config import resolve
from tf_adapters.text import defaults

pytestmark = pytest.mark.integration

COUNTS = {"Geschäft": 25, "Sport": 12, "Kultur": 8}
COLUMNS = ("--text=review", "--label=topic")
SMALL = (f"--encoder={commands.ENCODER}", "--max_length=16")


def _write(path, rows, columns=("review", "topic")):
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([columns, *rows])
    return path


def _rows():
    return [
        (f"a film, {name} {i}", name)
        for name, count in COUNTS.items()
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Makes a folder with a table and a run trained on it."""
    folder = tmp_path_factory.mktemp("table")
    _write(folder / "news.csv", _rows())
    status = _train(folder, "--method=head_only", f"--test={folder}/news.csv")
    assert status == 0
    return folder


def _train(folder, *flags):
    run = f"--model_dir={folder / 'run'}"
    data = f"--data={folder / 'news.csv'}"
    return subcommands.run("train", data, *COLUMNS, *SMALL, run, *flags)


def _result(folder):
    return json.loads((folder / "run/result.json").read_text("utf-8"))


def test_a_run_begins_with_what_it_found(tmp_path, capsys):
    _write(tmp_path / "news.csv", _rows())
    # It ends before training, because no encoder has so many positions.
    assert _train(tmp_path, "--max_length=9000") == 1
    said = capsys.readouterr().out
    assert "validation: 4 of 45 rows, drawn from each class" in said
    classes = "3 classes: Geschäft 25, Sport 12, Kultur 8"
    assert f"{classes}; always the largest: 0.556" in said
    assert "learning rate 0.001, at most 200 steps: 100 epochs of 2" in said
    assert not (tmp_path / "run/result.json").exists()


def test_classes_that_are_numbers_are_reported_from_their_counts(
    tmp_path, capsys
):
    rows = [(f"film {i}", "5" if i % 3 else "1") for i in range(60)]
    _write(tmp_path / "news.csv", rows)
    assert _train(tmp_path, "--max_length=9000") == 1
    assert "2 classes: `5` 40, `1` 20;" in capsys.readouterr().out


def test_a_short_run_has_200_steps_and_a_rate_of_its_own(folder):
    assert _result(folder)["steps"] == 200
    config = resolve.load_config(folder / "run/config.yaml")
    assert config.train.learning_rate == 1e-2
    assert config.task == "news"
    assert set(_result(folder)) >= {"validation", "test"}


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        ({"data": {"file": "x.csv"}}, (1e-3, 200, True)),
        (
            {"data": {"file": "x.csv"}, "train": {"epochs": 2}},
            (1e-3, None, True),
        ),
        (
            {"data": {"file": "x.csv"}, "train": {"learning_rate": 0.5}},
            (0.5, 200, True),
        ),
        (
            {"data": {"file": "x.csv"}, "train": {"evaluate_loss": False}},
            (1e-3, 200, False),
        ),
        (
            {
                "data": {"file": "x.csv"},
                "method": {"name": "parallel", "scaling": "1e-1"},
            },
            (1e-3, 200, True),
        ),
        (
            {"data": {"file": "x.csv"}, "method": "no_bert"},
            (3e-4, None, False),
        ),
        (
            {
                "data": {"file": "x.csv"},
                "method": {
                    "name": "union",
                    "parts": ["lora", "parallel"],
                },
            },
            (1e-4, 200, True),
        ),
        ({"task": "sst2"}, (3e-4, None, False)),
    ],
    ids=["data", "epochs", "rate", "loss", "text", "no_bert", "parts", "task"],
)
def test_a_named_setting_wins_over_a_short_runs(layer, expected):
    train = resolve.combine(*defaults.with_short_run([layer])).train
    found = (train.learning_rate, train.min_steps, train.evaluate_loss)
    assert found == expected


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        ([{"data": {"file": "x.csv"}}], "Pfeiffer"),
        ([{"method": "lora"}, {"data": {"file": "x.csv"}}], "LoRA"),
        ([{"task": "sst2"}], "Houlsby"),
    ],
    ids=["table", "named", "task"],
)
def test_a_table_has_a_default_method_of_its_own(layers, expected):
    config = resolve.combine(*defaults.with_short_run(layers))
    assert type(resolve.build_method(config).method).__name__ == expected


def test_a_finished_run_is_known_again(folder, capsys):
    flags = ("--method=head_only", f"--test={folder}/news.csv")
    assert _train(folder, *flags) == 0
    assert "holds this run, which has finished" in capsys.readouterr().out


def test_one_text_gives_one_line(folder, capsys):
    assert subcommands.run("predict", folder / "run", "ein Film") == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) == 1 and "Geschäft" in out
    answer = json.loads(out)
    assert set(answer) == {"label", "probabilities"}
    assert set(answer["probabilities"]) == set(COUNTS)


def test_a_printed_answer_has_no_file(folder, tmp_path, capsys):
    output = tmp_path / "answer.jsonl"
    flags = ("ein Film", f"--output={output}")
    assert subcommands.run("predict", folder / "run", *flags) == 1
    assert "an effect only with --input" in capsys.readouterr().err
    assert not output.exists()


def test_an_evaluation_on_other_rows_says_what_its_report_shows(folder, capsys):
    run, line = folder / "run", "report below shows the test predictions"
    for rows, is_said in ((_rows(), False), (_rows()[:25], True)):
        file = _write(folder / "other.csv", rows)
        assert subcommands.run("eval", run, f"--test={file}") == 0
        assert (line in capsys.readouterr().out) == is_said


def test_the_number_of_texts_is_the_tasks(folder, capsys):
    assert subcommands.run("predict", folder / "run", "a", "b") == 1
    assert "give a quoted text for each" in capsys.readouterr().err


def test_the_table_may_move(folder, capsys):
    moved = (folder / "news.csv").rename(folder / "moved.csv")
    try:
        assert subcommands.run("predict", folder / "run", "a") == 0
        assert subcommands.run("eval", folder / "run") == 1
        assert "Say where it is with --data=" in capsys.readouterr().err
        flags = (f"--data={moved}", f"--test={moved}")
        assert subcommands.run("eval", folder / "run", *flags) == 0
    finally:
        moved.rename(folder / "news.csv")
    accuracy = _result(folder)["validation"]["accuracy"]
    assert f"validation: accuracy {accuracy:.4f}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "piped", ["ein Film\nzwei\n", '{"review": "ein Film"}\n{"review": "zwei"}']
)
def test_a_pipe_is_answered(folder, capsys, monkeypatch, piped):
    stream = types.SimpleNamespace(buffer=io.BytesIO(piped.encode()))
    monkeypatch.setattr("sys.stdin", stream)
    assert subcommands.run("predict", folder / "run", "--input=-") == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    assert [row["review"] for row in rows] == ["ein Film", "zwei"]


def test_a_table_comes_out(folder, tmp_path, capsys):
    path = tmp_path / "new" / "out.csv"
    texts = _write(tmp_path / "in.csv", [("a, b", ""), ("c", "")])
    flags = (f"--input={texts}", f"--output={path}")
    assert subcommands.run("predict", folder / "run", *flags) == 0
    assert not capsys.readouterr().out
    rows = list(csv.DictReader(io.StringIO(path.read_text("utf-8"))))
    assert [row["review"] for row in rows] == ["a, b", "c"]
    assert list(rows[0]) == ["review", "label", *sorted(COUNTS)]
    assert float(rows[0]["Sport"]) > 0


def test_an_unknown_ending_is_refused_before_anything_is_predicted(
    folder, capsys
):
    (folder / "new.csv").write_text("text\nfine\n")
    flags = (f"--input={folder}/new.csv", "--output=x.xlsx")
    assert subcommands.run("predict", folder / "run", *flags) == 1
    error = capsys.readouterr().err
    assert "a name that ends in .jsonl, .csv. Received: .xlsx" in error


def test_a_missing_input_is_reported_before_the_run_is_read(tmp_path, capsys):
    flags = (f"--input={tmp_path}/none.csv",)
    assert subcommands.run("predict", tmp_path / "no_run", *flags) == 1
    error = capsys.readouterr().err
    assert "none.csv: No such file or directory." in error


def test_numbers_are_predicted_where_that_is_asked(tmp_path, capsys):
    rows = [(f"a film {i}", i / 10) for i in range(30)]
    _write(tmp_path / "news.csv", rows)
    assert _train(tmp_path) == 1
    assert "Add --head=regression" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
    flags = ("--head=regression", "--method=head_only", "--epochs=1")
    assert _train(tmp_path, *flags) == 0
    assert "labels from 0 to 2.9, mean 1.45" in capsys.readouterr().out
    # The head begins at the mean of the rows that are trained on.
    trained = settings_text.load_yaml(tmp_path / "run/config.yaml")
    assert trained["head"] == {"initial_bias": "mean"}
    metrics = {"spearman", "pearson", "loss"}
    assert set(_result(tmp_path)["validation"]) == metrics


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ([], "Say what to train on"),
        (["--data=nowhere.csv"], "There is no file"),
        (["news.csv"], "Is this a table of texts: --data=news.csv?"),
        (["--data=a.csv", "--task=sst2"], "Give one of the two"),
        (["--data=a.csv", "--task_file=a.yaml"], "Give --task_file or --data"),
        (["--data=a.csv", "--text=a,b,c"], "There is no file"),
    ],
)
def test_mistakes(flags, sentence, capsys):
    assert subcommands.run("train", *flags) == 1
    assert sentence in capsys.readouterr().err
