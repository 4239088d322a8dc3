"""Compares training steps with those of the `adapters` library in PyTorch.

`tests/fixtures/make_training_fixtures.py` makes the expected values.
"""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests import library_names
from tf_adapters import heads
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples
from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods import Houlsby
from tf_adapters.models.adapter_model import adapt
from tf_adapters.training import distribution
from tf_adapters.training.trainer import Trainer

FIXTURES = Path(__file__).parents[1] / "fixtures"
LABELS = ("no", "yes", "maybe")
HEADS = {
    "classification": heads.Classification(LABELS, dropout_rate=0.0),
    "tagging": heads.Tagging(LABELS, dropout_rate=0.0),
    "span": heads.Span(),
    "choice": heads.Choice(dropout_rate=0.0),
}

# They shift all scores alike where a softmax is over places or choices, which
# it takes no notice of: their gradients are noise.
SHIFTS = ("head.bias", "encoder.encoder.layer.1.output.LayerNorm.bias")


def _examples(arrays):
    ends = np.cumsum(arrays["lengths"])[:-1]
    ids, segments = (
        np.split(arrays[name], ends) for name in ("token_ids", "segment_ids")
    )
    targets, counts = arrays["targets"], None
    if len(targets) == len(arrays["token_ids"]):
        targets = np.split(targets, ends)
        counts = np.array([np.sum(row != IGNORED) for row in targets])
    if "choices" in arrays:
        ends = np.cumsum(arrays["choices"])[:-1]
        ids, segments = (
            [list(row) for row in np.split(np.array(all_, object), ends)]
            for all_ in (ids, segments)
        )
    return pipeline.to_tensors(
        Examples(ids, segments, targets, counts, pad_id=0)
    )


def _named(model):
    yield from library_names.of(model, "encoder", "task")
    kernel, bias = model.head_layer.trainable_variables
    yield "head.weight", kernel, True
    yield "head.bias", bias, False


def _trainer(head, report):
    config = resolve.resolve_config(
        {
            "task": "toy",
            "method": "houlsby",
            "train": {
                "learning_rate": report["learning_rate"],
                "warmup_fraction": report["warmup"] / report["steps"],
            },
        }
    )
    strategy = distribution.make_strategy("one_device")
    method = Houlsby(units=report["units"], activation="silu")
    with strategy.scope():
        encoder, _ = load_encoder(FIXTURES / "adapters" / "encoders" / "bert")
        model = adapt(encoder, method, HEADS[head])
    trainer = Trainer(
        model, strategy, config.train, config.data, config.seed, ()
    )
    trainer.prepare_training(report["steps"])
    return trainer


@pytest.mark.slow
@pytest.mark.parametrize("head", HEADS)
def test_losses_and_weights_of_each_step_are_the_librarys(head):
    folder = FIXTURES / "training" / head
    report = json.loads((folder / "report.json").read_text())
    examples = _examples(np.load(folder / "examples.npz", allow_pickle=False))
    trainer = _trainer(head, report)
    named = list(_named(trainer.model))
    start = load_file(folder / "start.safetensors")
    assert {name for name, *_ in named} == set(start)
    for name, variable, transposed in named:
        variable.assign(start[name].T if transposed else start[name])
    batches = [
        batch_plan.Batch(indices, int(examples.lengths[indices].max()))
        for indices in np.load(folder / "batches.npy", allow_pickle=False)
    ]
    data = iter(trainer.inputs.dataset(examples, batches))
    step = tf.function(trainer.step.on_replicas, reduce_retracing=True)
    losses = [float(step(next(data))[0]) for _ in batches]
    np.testing.assert_allclose(losses, report["losses"], rtol=1e-5)
    end = load_file(folder / "end.safetensors")
    for name, variable, transposed in named:
        if name in SHIFTS and head in ("span", "choice"):
            continue
        actual = variable.numpy().T if transposed else variable.numpy()
        assert np.abs(actual - start[name]).max() > 1e-3
        np.testing.assert_allclose(actual, end[name], atol=2e-5, err_msg=name)


def _with_dropout(passes):
    """Returns means and deviations of hidden states: ours and the library's.

    Args:
        passes: Number of forward passes of each text.
    """
    arrays = load_file(FIXTURES / "training" / "dropout.safetensors")
    encoder, _ = load_encoder(FIXTURES / "adapters" / "encoders" / "bert")
    encoder = dataclasses.replace(
        encoder,
        hidden_dropout=0.3,
        attention_output_dropout=0.3,
        ffn_output_dropout=0.3,
        attention_dropout=0.2,
    )
    method = Houlsby(units=8, activation="silu", train_layer_norms=False)
    model = adapt(encoder, method)
    for name, variable, transposed in library_names.of(model, "", "task"):
        if ".adapters." in name:
            value = arrays[name.removeprefix(".")]
            variable.assign(value.T if transposed else value)
    ids, mask = (
        np.tile(arrays[name], (passes, 1))
        for name in ("input_ids", "attention_mask")
    )
    features = {"token_ids": ids, "padding_mask": mask, "segment_ids": 0 * ids}
    outputs = model(features, training=True, seed=[3, 0])["sequence_output"]
    draws = outputs.numpy().reshape(passes, *arrays["mean"].shape)
    there = arrays["attention_mask"] == 1
    found = draws.mean(0)[there], draws.std(0)[there]
    return found, (arrays["mean"][there], arrays["deviation"][there])


def test_dropout_acts_where_it_does_in_the_library():
    """Single draws differ, but the moments over many draws are equal."""
    passes, theirs = 10_000, 10_000
    (mean, deviation), (wanted, wanted_deviation) = _with_dropout(passes)
    assert wanted_deviation.min() > 0.05
    error = np.sqrt(deviation**2 / passes + wanted_deviation**2 / theirs)
    scores = (mean - wanted) / error
    # 320 numbers, many of them alike.
    assert np.abs(scores).max() < 4.5 and 0.7 < scores.std() < 1.3
    np.testing.assert_allclose(deviation / wanted_deviation, 1, atol=0.05)
