"""Trains a tiny model on made-up texts, for tests of the trainer."""

import dataclasses

import keras
import numpy as np

from tests import tiny
from tests.methods import cases
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples
from tf_adapters.runs import strategies
from tf_adapters.training.loop import Loop

HEAD = heads.Classification(("no", "yes"), dropout_rate=0.0)


def config(data=None, **train):
    return resolve.resolve_config(
        {
            "task": "toy",
            "method": "houlsby",
            "data": data or {},
            "train": {"batch_size": 8, "learning_rate": 1e-2, **train},
        }
    )


def examples(count=21, seed=0):
    """Texts that begin with a number below 25, or not."""
    generator = np.random.default_rng(seed)
    rows = [
        generator.integers(1, tiny.VOCABULARY, generator.integers(3, 10))
        for _ in range(count)
    ]
    targets = np.array([int(row[0] < 25) for row in rows], "int32")
    segments = [0 * row for row in rows]
    return pipeline.to_tensors(Examples(rows, segments, targets, pad_id=0))


def trainer(
    config,
    strategy="one_device",
    dropout=0.0,
    method=None,
    head=HEAD,
    num_blocks=None,
):
    config = dataclasses.replace(config, distribution_strategy=strategy)
    strategy = strategies.strategy_of(config)
    keras.utils.set_random_seed(0)
    method = method or methods.Houlsby(units=4)
    with strategy.scope():
        encoder = tiny.encoder(
            dropout=dropout,
            dtype=config.train.precision,
            num_blocks=num_blocks or cases.num_blocks(method),
        )
        model = cases.build(encoder, method, head, remat=config.train.remat)
    return strategies.trainer_class()(
        model, strategy, config.train, config.data, config.seed, ("accuracy",)
    )


def fit(trainer, train=None, validation=None):
    records, saved = [], []
    outcome = Loop(
        trainer,
        train or examples(),
        validation or examples(seed=1),
        records.append,
        saved.append,
    ).run()
    return outcome, records, saved


def losses(records):
    return [record["loss"] for record in records if "loss" in record]
