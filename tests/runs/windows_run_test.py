"""Tests long texts in windows from files to files, with different batches."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests import tiny
from tests.runs import whole_runs
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples
from tf_adapters.models.adapter_model import adapt
from tf_adapters.training import distribution
from tf_adapters.training.loop import Loop
from tf_adapters.training.trainer import Trainer

pytestmark = pytest.mark.integration

LENGTH, BATCH, COUNT = 12, 4, 13


def _examples():
    generator = np.random.default_rng(0)
    counts = generator.integers(1, 6, COUNT)
    ids = [
        [
            generator.integers(1, tiny.VOCABULARY, generator.integers(3, 9))
            for _ in range(count)
        ]
        for count in counts
    ]
    segments = [[0 * window for window in row] for row in ids]
    targets = (counts % 2).astype("int32")
    return pipeline.to_tensors(Examples(ids, segments, targets, pad_id=0))


def _outcome(batching, strategy="one_device"):
    """Returns losses of a short training, and outputs after it."""
    config = resolve.resolve_config(
        {
            "task": "toy",
            "method": "houlsby",
            "data": {"batching": batching, "max_length": LENGTH},
            "train": {
                "batch_size": BATCH,
                "eval_batch_size": BATCH,
                "epochs": 2,
                "learning_rate": 1e-2,
            },
        }
    )
    strategy = distribution.make_strategy(strategy)
    keras.utils.set_random_seed(0)
    with strategy.scope():
        head = heads.Classification(("a", "b"), dropout_rate=0.0, windows=5)
        model = adapt(tiny.encoder(), methods.Houlsby(units=4), head)
    trainer, records = (
        Trainer(
            model,
            strategy,
            config.train,
            config.data,
            config.seed,
            ("accuracy",),
        ),
        [],
    )
    examples = _examples()
    Loop(trainer, examples, examples, records.append, lambda _: None).run()
    losses = [record["loss"] for record in records if "loss" in record]
    return losses, np.array(trainer.predict(examples))


@pytest.mark.slow
def test_padding_and_replicas_change_nothing():
    losses, outputs = _outcome("random")
    assert losses[0] != losses[-1] and outputs.shape == (COUNT, 2)
    for batching, strategy in (("fixed", "one_device"), ("random", "mirrored")):
        others, answers = _outcome(batching, strategy)
        np.testing.assert_allclose(others, losses, atol=5e-5)
        np.testing.assert_allclose(answers, outputs, atol=2e-3)


def test_texts_of_as_many_windows_come_together():
    lengths = np.full(64, 128)
    counts = np.random.default_rng(0).integers(1, 9, 64)
    together = batch_plan.plan_training(
        lengths, 8, 0, 0, "grouped", costs=lengths * counts
    )
    apart = batch_plan.plan_training(lengths, 8, 0, 0, "grouped")
    first = batch_plan.plan_evaluation(lengths, 8, costs=lengths * counts)[0]
    assert counts[first.indices].min() >= np.sort(counts)[-8]

    def computed(plan):
        return sum(8 * counts[batch.indices].max() for batch in plan)

    assert counts.sum() <= computed(together) < 0.75 * computed(apart)


_WORDS = "the film is good and dull but not bad it was very".split()
_RANDOM = np.random.default_rng(0)
ROWS = [
    {
        "sentence": " ".join(_RANDOM.choice(_WORDS, _RANDOM.integers(2, 40))),
        "label": i % 2,
    }
    for i in range(24)
]
WINDOWS = {"windows": 3, "window_stride": 9, "pooling": "max"}
SETTINGS = {
    "task": "sst2",
    "encoder": commands.ENCODER,
    "method": "houlsby",
    "data": {"max_length": 16, **WINDOWS},
    "train": {"epochs": 2, "batch_size": 8, "learning_rate": 1e-2},
}


@pytest.fixture(name="folder", scope="module")
def _folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("windows")
    for split in ("train", "dev", "test"):
        commands.write_rows(folder / "sst2" / f"{split}.jsonl", ROWS)
    assert commands.run(folder / "run", _settings(folder)) == 0
    return folder


def _settings(folder, **data):
    data = {**SETTINGS["data"], "data_dir": str(folder), **data}
    return {**SETTINGS, "data": data}


def _predict(folder, settings=None):
    rows = [{"sentence": row["sentence"]} for row in ROWS]
    options = {
        "input": commands.write_rows(folder / "new.jsonl", rows),
        "output": str(folder / "out.jsonl"),
    }
    assert (
        commands.run(folder / "run", settings, mode="predict", **options) == 0
    )
    return [
        list(row["probabilities"].values())
        for row in commands.read_rows(folder / "out.jsonl")
    ]


def test_predictions_the_export_and_the_stored_ones_agree(folder):
    predicted = _predict(folder)
    assert np.ptp(np.array(predicted)[:, 0]) > 1e-3
    stored = json.loads(
        (folder / "run/adapter/adapter_config.json").read_text()
    )
    assert {k: stored["head"][k] for k in WINDOWS} == WINDOWS
    assert commands.run(folder / "run", mode="export") == 0
    path = folder / "run" / "export" / "sst2" / "1"
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    texts = tf.constant([row["sentence"] for row in ROWS])
    answer = serve(texts)["probabilities"]
    np.testing.assert_allclose(answer, predicted, atol=1e-5)


def test_evaluation_repeats_its_numbers(folder, capsys):
    result = json.loads((folder / "run" / "result.json").read_text())
    assert commands.run(folder / "run", mode="eval") == 0
    expected = f"test: accuracy {result['test']['accuracy']:.4f}"
    assert expected in capsys.readouterr().out


def test_a_finished_run_may_read_more_or_fewer_windows(folder, capsys):
    usual = _predict(folder)
    cut = _predict(folder, {"data": {"windows": 1}})
    assert np.abs(np.array(cut) - usual).max() > 1e-4
    status = commands.run(
        folder / "run", {"data": {"pooling": "mean"}}, mode="eval"
    )
    assert status == 1
    assert "takes `data.pooling` from the run" in capsys.readouterr().err


def test_a_stopped_run_ends_as_if_never(folder, monkeypatch):
    with monkeypatch.context() as patch:
        whole_runs.stop_at(patch, 4)
        assert commands.run(folder / "stopped", _settings(folder)) != 0
    assert not (folder / "stopped" / "result.json").exists()
    assert commands.run(folder / "stopped", _settings(folder)) == 0
    weights, wanted = (
        (folder / name / "adapter/adapter.safetensors").read_bytes()
        for name in ("stopped", "run")
    )
    assert weights == wanted


@pytest.mark.parametrize(
    ("task", "data", "said"),
    [
        ("sst2", {"window_stride": 15}, "must be at most 14, the tokens"),
        ("sst2", {"window_stride": 0}, "`data.window_stride` must be at least"),
        ("sst2", {"windows": 0}, "`data.windows` must be at least 1"),
        ("sst2", {"windows": -1}, "`data.windows` must be at least 1"),
        ("sst2", {"pooling": "sum"}, "data.pooling"),
        ("mrpc", {}, "reads sentence1 and sentence2 together"),
        ("squad", {}, "Received: a head `span`"),
    ],
)
def test_what_cannot_be_is_one_sentence(folder, task, data, said, capsys):
    settings = {**_settings(folder, **data), "task": task}
    _write(folder, task)
    assert commands.run(folder / "wrong", settings) == 1
    assert said in capsys.readouterr().err
    assert not (folder / "wrong" / "adapter").exists()


def _write(folder, task):
    """Writes the rows of a task, each a repetition of one row."""
    pair = {"sentence1": "it was good", "sentence2": "it was", "label": 1}
    if task == "mrpc":
        for split in ("train", "dev", "test"):
            commands.write_rows(folder / task / f"{split}.jsonl", [pair] * 8)
    if task == "squad":
        answer = {"text": "good", "answer_start": 7}
        asked = {"id": "1", "question": "what", "answers": [answer]}
        paragraph = {"context": "it was good", "qas": [asked]}
        data = {"data": [{"title": "a", "paragraphs": [paragraph]}]}
        for split in ("train", "dev"):
            path = folder / "squad" / f"{split}-v1.1.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(data))
