"""Single training steps of small random encoders, by method and head."""

import keras
import numpy as np
import tensorflow as tf

from tests import tiny
from tests.methods import cases
from tf_adapters import heads
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import Examples
from tf_adapters.data.examples import Masking
from tf_adapters.training import distribution
from tf_adapters.training.trainer import Trainer

LABELS = ("no", "yes", "maybe")
LENGTH, BATCH = 12, 4
CLASSIFICATION = heads.Classification(LABELS, dropout_rate=0.0)


def config(**train):
    """Returns a configuration of which only the training settings are used."""
    return resolve.resolve_config(
        {
            "task": "toy",
            # Of the settings only those of training count.
            "method": "houlsby",
            "data": {"batching": "fixed", "max_length": LENGTH},
            "train": {
                "batch_size": BATCH,
                "learning_rate": 1e-2,
                "warmup_fraction": 0.0,
                **train,
            },
        }
    )


def _ids(count=6):
    generator = np.random.default_rng(0)
    lengths = generator.integers(4, LENGTH + 1, count)
    return [
        generator.integers(5, tiny.VOCABULARY, n).astype("int32")
        for n in lengths
    ]


def _examples(targets, ids=None, **options):
    ids = ids or _ids()
    encoded = Examples(ids, _zeros(ids), targets, pad_id=0, **options)
    return pipeline.to_tensors(encoded)


def _zeros(ids):
    return [_zeros(x) if isinstance(x, list) else 0 * x for x in ids]


def _texts_of_rows(size):
    ids = _ids(3 * size)
    return [ids[i : i + size] for i in range(0, 3 * size, size)]


def _tags():
    return [np.arange(len(row), dtype="int32") % 3 - 1 for row in _ids()]


# Kind of output: its head, and examples for it.
HEADS = {
    "classification": (
        CLASSIFICATION,
        lambda: _examples(np.arange(6, dtype="int32") % 3),
    ),
    "multilabel": (
        heads.MultiLabel(LABELS, dropout_rate=0.0),
        lambda: _examples(np.arange(18, dtype="float32").reshape(6, 3) % 2),
    ),
    "regression": (
        heads.Regression(dropout_rate=0.0),
        lambda: _examples(np.arange(6, dtype="float32")),
    ),
    "tagging": (
        heads.Tagging(LABELS, dropout_rate=0.0),
        lambda: _examples(_tags(), counts=np.array([3] * 6)),
    ),
    "span": (
        heads.Span(),
        lambda: _examples(np.array([[1, 2]] * 6, "int32")),
    ),
    "choice": (
        heads.Choice(dropout_rate=0.0),
        lambda: _examples(
            np.array([0, 1, 0], "int32"),
            [_ids()[0:2], _ids()[2:5], _ids()[4:6]],
        ),
    ),
    "sentence_vector": (
        heads.SentenceVector(),
        lambda: _examples(
            np.array([0.2, 0.9, 0.5], "float32"), _texts_of_rows(2)
        ),
    ),
    "sentence_ranking": (
        heads.SentenceRanking(),
        lambda: _examples(
            np.arange(9, dtype="int32").reshape(3, 3), _texts_of_rows(3)
        ),
    ),
    "masked_lm": (
        heads.MaskedLM(tiny.VOCABULARY, tiny.WIDTH),
        lambda: _examples(
            None,
            counts=np.array([2] * 6, "int32"),
            masking=Masking(4, (0, 1, 2, 3, 4), tiny.VOCABULARY),
        ),
    ),
}


def make_trainer(method, head, settings):
    """Returns a trainer of a random model that is ready to train."""
    strategy = distribution.make_strategy("one_device")
    keras.utils.set_random_seed(0)
    with strategy.scope():
        encoder = tiny.encoder(num_blocks=cases.num_blocks(method))
        model = cases.build(encoder, method, head)
        # Small gradients would be mostly noise, which Adam makes large.
        tiny.randomize(model.trained_variables().values())
    trainer = Trainer(
        model, strategy, settings.train, settings.data, settings.seed, ()
    )
    trainer.prepare_training(10)
    return trainer


def plan(examples):
    """Returns the batches of an epoch."""
    return batch_plan.plan_training(
        examples.lengths, BATCH, 0, 0, "fixed", (LENGTH,)
    )


def take(trainer, examples, compiled):
    """Trains one batch; returns its loss."""
    batches = trainer.inputs.dataset(examples, plan(examples))
    step = tf.function(
        trainer.step.on_replicas, autograph=False, jit_compile=compiled
    )
    loss, _ = step(next(iter(batches)))
    return float(loss)
