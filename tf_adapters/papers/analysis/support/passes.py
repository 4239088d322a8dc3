"""Runs a trained model on a data set to get its outputs or its speed."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Iterator
import time
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

if TYPE_CHECKING:
    from tf_adapters.config.settings import Config
    from tf_adapters.data.examples import Examples
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.runs.experiment import Experiment
    from tf_adapters.training.trainer import Trainer


def probe_passes(
    experiment: Experiment, rows: Any, read: Any
) -> Iterator[tuple[Any, dict[str, Any], Any]]:
    """Runs an experiment's encoder on rows, in evaluation mode.

    The outputs include probes: values inside the blocks, such as an adapter's
    weights for each token.

    Args:
        experiment: `Experiment`.
        rows: List of dicts, rows of the experiment's task.
        read: See `encoder_passes`.

    Returns:
        See `encoder_passes`.
    """
    examples = experiment.examples(rows, labeled=False)
    return encoder_passes(
        experiment.model, experiment.config, examples, read, return_probes=True
    )


def encoder_passes(
    model: AdapterModel,
    config: Config,
    examples: Examples,
    read: Callable[..., Any],
    **options: Any,
) -> Iterator[tuple[Any, dict[str, Any], Any]]:
    """Runs a model's encoder on batches of examples, in evaluation mode.

    Args:
        model: `AdapterModel`.
        config: `Config`; its `train.eval_batch_size` is used.
        examples: `Examples`. Each choice in a list counts as a separate text.
        read: Function that takes the encoder's outputs and returns the tensors
            to keep. It runs inside a `tf.function`.
        **options: Keyword arguments with which `AdaptedEncoder` is called.

    Yields:
        For each batch, the indices of its examples `(batch,)`, the encoder's
        inputs, and the tensors that `read` returned.
    """
    import tensorflow as tf

    from tf_adapters.data.batches import batch_plan
    from tf_adapters.data.batches import pipeline
    from tf_adapters.data.examples import encoder_inputs
    from tf_adapters.models.encoder_model import as_sequences

    @tf.function(reduce_retracing=True)
    def step(inputs: Any) -> Any:
        return read(model.encode(inputs, **options))

    plan = batch_plan.plan_evaluation(
        examples.lengths, config.train.eval_batch_size
    )
    for features in pipeline.dataset(examples, plan):
        inputs = as_sequences(encoder_inputs(features))
        yield features["indices"].numpy(), inputs, step(inputs)


def compare_speeds(
    whole: Any, smaller: Any, turns: int
) -> tuple[Any, Any, Any]:
    """Measures how many times faster a smaller model is than the complete one.

    Args:
        whole: Pair of a `Trainer` and the `Examples` to predict.
        smaller: The same pair for the smaller model.
        turns: Number of timings of each model. The two are timed alternately.

    Returns:
        `(median, low, high)`: the median and the quartiles, over turns, of the
        complete model's seconds divided by the smaller model's.
    """
    ratios = [_seconds(*whole) / _seconds(*smaller) for _ in range(turns + 1)]
    # The first turn built the graphs, so it does not count.
    low, median, high = np.quantile(ratios[1:], (0.25, 0.5, 0.75)).tolist()
    return median, low, high


def _seconds(trainer: Trainer, examples: Any) -> float:
    started = time.perf_counter()
    trainer.predict(examples)
    return time.perf_counter() - started
