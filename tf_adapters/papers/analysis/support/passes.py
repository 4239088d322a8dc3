"""Passes of a trained model over a data set: its outputs, and their time."""

import time

import numpy as np


def probe_passes(experiment, rows, read):
    """Computes the outputs of an experiment's encoder, probes among them.

    Args:
        experiment: `Experiment`.
        rows: Its task's rows.
        read: See `encoder_passes`.

    Returns:
        See `encoder_passes`.
    """
    examples = experiment.examples(rows, labeled=False)
    return encoder_passes(
        experiment.model, experiment.config, examples, read, return_probes=True
    )


def encoder_passes(model, config, examples, read, **options):
    """Computes the encoder's outputs in evaluation.

    Args:
        model: `AdapterModel`.
        config: `Config`; its `train.eval_batch_size` is used.
        examples: `Examples`. Each choice of a list is a text of its own.
        read: Function from the encoder's outputs to tensors, part of the graph.
        **options: See the call of `AdaptedEncoder`.

    Yields:
        For each batch the places of its examples `(batch,)`, the encoder's
        inputs, and what `read` returned.
    """
    import tensorflow as tf

    from tf_adapters.data.batches import batch_plan
    from tf_adapters.data.batches import pipeline
    from tf_adapters.data.examples import encoder_inputs
    from tf_adapters.models.encoder_model import as_sequences

    @tf.function(reduce_retracing=True)
    def step(inputs):
        return read(model.encode(inputs, **options))

    plan = batch_plan.plan_evaluation(
        examples.lengths, config.train.eval_batch_size
    )
    for features in pipeline.dataset(examples, plan):
        inputs = as_sequences(encoder_inputs(features))
        yield features["indices"].numpy(), inputs, step(inputs)


def compare_speeds(whole, smaller, turns):
    """Returns how many times as fast a smaller model is than the whole one.

    Args:
        whole: Pair of a `Trainer` and the examples that it predicts.
        smaller: Another one.
        turns: How often each is timed, the two in turn.

    Returns:
        `(median, low, high)`: the seconds of the whole divided by those of the
        smaller, as median and middle half over the turns.
    """
    ratios = [_seconds(*whole) / _seconds(*smaller) for _ in range(turns + 1)]
    # The first one built the graphs.
    low, median, high = np.quantile(ratios[1:], (0.25, 0.5, 0.75)).tolist()
    return median, low, high


def _seconds(trainer, examples):
    started = time.perf_counter()
    trainer.predict(examples)
    return time.perf_counter() - started
