"""Tests questions from files to files, from training to export."""

import dataclasses
import json

import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests.cli import subcommands
from tf_adapters.config import resolve
from tf_adapters.runs import finished_run

pytestmark = pytest.mark.integration

CONTEXT = "the plot is bad , but the film is not ,  it was very good . " * 2
ANSWERS = ("film", "bad", "very good")


def _content(path):
    questions = [
        {
            "id": f"q{i}",
            "question": f"what is {answer}",
            "answers": [
                {"text": answer, "answer_start": CONTEXT.index(answer)},
                {"text": "plot", "answer_start": CONTEXT.index("plot")},
            ],
        }
        for i, answer in enumerate(ANSWERS * 4)
    ]
    paragraphs = [{"context": CONTEXT, "qas": questions}]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("span")
    for split in ("train", "dev"):
        _content(folder / "squad" / f"{split}-v1.1.json")
    settings = {
        "task": "squad",
        "encoder": commands.ENCODER,
        "method": "houlsby",
        "data": {"max_length": 32, "data_dir": str(folder)},
        "train": {"epochs": 2, "batch_size": 8, "learning_rate": 0.01},
    }
    assert commands.run(folder / "run", settings) == 0
    return folder


@pytest.mark.slow
def test_evaluation_repeats_its_numbers_which_are_those_of_the_answers(
    folder, capsys
):
    result = json.loads((folder / "run" / "result.json").read_text())
    validation = result["validation"]
    assert result["examples"] == 2 * 2 * 12  # Two windows a question.
    assert commands.run(folder / "run", mode="eval") == 0
    line = ", ".join(f"{name} {v:.4f}" for name, v in validation.items())
    assert f"validation: {line}" in capsys.readouterr().out
    options = {"input": _content(folder / "new.json")}
    output = folder / "predictions.json"
    status = commands.run(
        folder / "run", mode="predict", output=str(output), **options
    )
    assert status == 0
    predicted = json.loads(output.read_text())
    assert list(predicted) == [f"q{i}" for i in range(12)]
    assert all(answer in CONTEXT for answer in predicted.values())
    exact = [
        predicted[f"q{i}"] in (answer, "plot", "the plot", f"the {answer}")
        for i, answer in enumerate(ANSWERS * 4)
    ]
    assert validation["exact_match"] == pytest.approx(np.mean(exact))


def test_windows_are_as_far_apart_as_the_command_says(folder):
    config = resolve.load_config(folder / "run" / "config.yaml")
    data = dataclasses.replace(config.data, doc_stride=3)
    config = dataclasses.replace(config, data=data)
    run = finished_run.load_to_export(config, folder / "run")
    assert run.model.head.stride == 3


def test_a_question_and_a_text_are_explained(folder, capsys):
    run = folder / "run"
    assert subcommands.run("explain", run, "who", "the plot") == 0
    assert "plot" in capsys.readouterr().out
    assert subcommands.run("explain", run, "the plot") == 1
    assert "reads `question` and `context`" in capsys.readouterr().err


@pytest.mark.slow
def test_the_export_takes_token_ids(folder, capsys):
    assert commands.run(folder / "run", mode="export") == 0
    path = folder / "run" / "export" / "squad" / "1"
    loaded = tf.saved_model.load(str(path))
    for name in ("serving_default", "token_ids"):
        answer = loaded.signatures[name](
            token_ids=tf.constant([[2, 9, 3, 20, 21, 3, 0]]),
            padding_mask=tf.constant([[1, 1, 1, 1, 1, 1, 0]]),
            segment_ids=tf.constant([[0, 0, 0, 1, 1, 1, 0]]),
        )
        assert answer["start_logits"].shape == (1, 7)
        assert answer["end_logits"][0, 6] == -1e9
        assert np.ptp(answer["start_logits"][0, :6]) > 1e-3
