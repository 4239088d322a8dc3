"""Tests a run with a fitted temperature, from its setting to its export."""

import json

import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tf_adapters.heads.temperature import fit_temperature
from tf_adapters.runs import predictions

pytestmark = pytest.mark.integration

SETTINGS = {
    "encoder": commands.ENCODER,
    "method": "houlsby",
    "data": {"max_length": 16},
    "train": {
        "epochs": 6,
        "batch_size": 8,
        "learning_rate": 1e-2,
        "calibrate": True,
    },
}
TASK = """
name: tiny
text_fields: [text]
labels: ["no", "yes"]
files: {train: train.jsonl, validation: dev.jsonl}
"""
TEXTS = ["the film is good", "it is bad", "the plot is good", "bad film"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Of 32 validation rows every fourth has the wrong label."""
    folder = tmp_path_factory.mktemp("calibrated")
    (folder / "tiny.yaml").write_text(TASK)
    rows = [{"text": t, "label": int("good" in t)} for t in TEXTS * 8]
    commands.write_rows(folder / "train.jsonl", rows)
    for place in range(0, 32, 4):
        label = rows[place + place // 4 % 4]["label"]
        rows[place + place // 4 % 4]["label"] = 1 - label
    commands.write_rows(folder / "dev.jsonl", rows)
    data = {**SETTINGS["data"], "task_file": str(folder / "tiny.yaml")}
    assert commands.run(folder / "run", {**SETTINGS, "data": data}) == 0
    return folder / "run"


def _predicted(run, tmp_path, **settings):
    """Returns the probabilities that the command predicts, `(texts, 2)`."""
    rows = [{"text": text} for text in TEXTS]
    output = tmp_path / "out.jsonl"
    status = commands.run(
        run,
        settings,
        mode="predict",
        input=commands.write_rows(tmp_path / "in.jsonl", rows),
        output=str(output),
    )
    assert status == 0
    return np.array(
        [list(r["probabilities"].values()) for r in commands.read_rows(output)]
    )


def test_the_adapter_has_it(run):
    adapter = json.loads((run / "adapter/adapter_config.json").read_text())
    result = json.loads((run / "result.json").read_text())
    assert adapter["head"]["temperature"] == result["temperature"] != 1


def test_stored_probabilities_have_the_least_loss(run):
    stored = predictions.load_predictions(run, "validation").compared
    logits = np.log(np.maximum(stored["probabilities"], 1e-5))
    again = fit_temperature(logits, stored["target"])
    assert again == pytest.approx(1, abs=0.02)


def test_predictions_and_the_export_have_it(run, tmp_path):
    temperature = json.loads((run / "result.json").read_text())["temperature"]
    fitted = _predicted(run, tmp_path)
    plain = _predicted(run, tmp_path, head={"temperature": 1.0})
    # The difference of two logits, and that of the divided ones.
    ratio = np.diff(np.log(plain)) / np.diff(np.log(fitted))
    np.testing.assert_allclose(ratio, temperature, rtol=2e-3)
    assert commands.run(run, mode="export") == 0
    path = run / "export/tiny/1"
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    answer = serve(text=tf.constant(TEXTS))["probabilities"].numpy()
    np.testing.assert_allclose(answer, fitted, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"task": "demo_sentiment", "head": {"temperature": 2.0}},
            "Leave one of the two out",
        ),
        ({"task": "ud_pos"}, "this run's head is a tagging"),
    ],
)
def test_where_it_cannot_be_fitted_nothing_trains(
    tmp_path, capsys, settings, message
):
    if settings["task"] == "ud_pos":
        row = "1\tfilm\t_\tNOUN\t_\t_\t_\t_\t_\t_\n\n"
        for split in ("train", "dev"):
            path = tmp_path / f"ud/en_x/{split}.conllu"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(row * 9)
        data = {"data_dir": str(tmp_path), "max_length": 24}
        settings = {**settings, "data": data}
    folder = tmp_path / "run"
    assert commands.run(folder, {**SETTINGS, **settings}) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "config.yaml").exists()
