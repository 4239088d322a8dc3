"""Tests multiple choice from files to files, with different batches."""

import json

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests import commands
from tests import tiny
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

LENGTH, BATCH, COUNT = 12, 4, 9


def _examples(most=4):
    generator = np.random.default_rng(0)
    counts = generator.integers(1, most + 1, COUNT)
    counts[0] = most
    ids = [
        [
            generator.integers(1, tiny.VOCABULARY, generator.integers(3, 9))
            for _ in range(count)
        ]
        for count in counts
    ]
    segments = [[0 * choice for choice in row] for row in ids]
    targets = (counts - 1).astype("int32")
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
        head = heads.Choice(dropout_rate=0.0)
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
    outcome = Loop(
        trainer, examples, examples, records.append, lambda _: None
    ).run()
    assert outcome["examples"] == 2 * COUNT
    assert 0 < outcome["padding_share"] < 1
    losses = [record["loss"] for record in records if "loss" in record]
    # Another set, with other most choices, goes through the same trainer.
    others = trainer.predict(_examples(2))
    assert len(others) == COUNT and max(map(len, others)) == 2
    scores = [
        row[:count]
        for row, count in zip(
            trainer.predict(examples),
            examples.token_ids.row_lengths().numpy(),
            strict=True,
        )
    ]
    return losses, np.concatenate(scores)


@pytest.fixture(scope="module")
def expected():
    """Batches of 4, 4 and 1 with as many choices as they need."""
    return _outcome("random")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("batching", "strategy"),
    [("fixed", "one_device"), ("fixed", "mirrored"), ("random", "mirrored")],
)
def test_padding_and_replicas_change_nothing(batching, strategy, expected):
    losses, scores = _outcome(batching, strategy)
    assert expected[0][0] != expected[0][-1]
    np.testing.assert_allclose(losses, expected[0], atol=5e-5)
    # The head's bias cancels in the softmax over choices, so its gradient is
    # rounding noise, which Adam scales up. It shifts all scores equally.
    received, scores = (x - x.mean() for x in (scores, expected[1]))
    np.testing.assert_allclose(received, scores, atol=2e-4)


def test_padding_is_counted_by_choices():
    lengths = np.array([[5, 3, 0], [4, 0, 0], [2, 2, 2]])
    batches = [batch_plan.Batch(np.array([0, 1]), 5)]
    assert batch_plan.padding_fraction(batches, lengths) == 1 - 12 / 20
    fixed = [batch_plan.Batch(np.array([0, 1]), 6, size=4)]
    assert batch_plan.padding_fraction(fixed, lengths) == 1 - 12 / 72


ROWS = [
    {"context": f"the _ is {word}", "choices": choices, "label": i % 2}
    for i, (word, choices) in enumerate(
        [("good", ["film", "plot"]), ("dull", ["it", "this film", "bad"])] * 8
    )
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("choice")
    for split in ("train", "dev", "test"):
        commands.write_rows(folder / "winogrande" / f"{split}.jsonl", ROWS)
    settings = {
        "task": "winogrande",
        "encoder": commands.ENCODER,
        "method": "houlsby",
        "data": {"max_length": 16, "data_dir": str(folder)},
        "train": {"epochs": 1, "batch_size": 8},
    }
    assert commands.run(folder / "run", settings) == 0
    return folder


@pytest.mark.slow
def test_a_run_trains_and_repeats_its_numbers(folder, capsys):
    result = json.loads((folder / "run" / "result.json").read_text())
    assert result["examples"] == 16 and set(result["test"]) == {"accuracy"}
    assert commands.run(folder / "run", mode="eval") == 0
    expected = f"test: accuracy {result['test']['accuracy']:.4f}"
    assert expected in capsys.readouterr().out


@pytest.mark.slow
def test_predictions_and_the_export_agree(folder):
    rows = [
        {"context": "a _ was bad", "choices": ["plot", "film", "this"]},
        {"context": "but _", "choices": ["not", "very dull it"]},
    ]
    options = {
        "input": commands.write_rows(folder / "new.jsonl", rows),
        "output": str(folder / "out.jsonl"),
    }
    assert commands.run(folder / "run", mode="predict", **options) == 0
    predicted = commands.read_rows(folder / "out.jsonl")
    assert [len(row["probabilities"]) for row in predicted] == [3, 2]
    assert predicted[1]["choices"] == rows[1]["choices"]
    assert commands.run(folder / "run", mode="export") == 0
    path = folder / "run" / "export" / "winogrande" / "1"
    serve = tf.saved_model.load(str(path)).signatures["serving_default"]
    answer = serve(
        sentence=tf.constant([row["context"] for row in rows]),
        choices=tf.constant([rows[0]["choices"], [*rows[1]["choices"], ""]]),
    )
    for i, row in enumerate(predicted):
        count = len(row["probabilities"])
        received = answer["probabilities"][i].numpy()
        np.testing.assert_allclose(
            received[:count], row["probabilities"], atol=1e-5
        )
        assert not received[count:].any()
        assert answer["label_id"][i] == row["label"]
        assert answer["label"][i].numpy().decode() == row["choice"]


def test_a_bank_refuses_it_in_a_sentence(folder, capsys):
    status = commands.run(
        folder / "bank", mode="export", adapters=[str(folder / "run")]
    )
    assert status == 1
    assert "is a choice, and a bank cannot hold it" in capsys.readouterr().err
