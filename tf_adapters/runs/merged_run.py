"""A run folder whose adapter was not trained but merged from others."""

import dataclasses
import functools
from pathlib import Path
import time

import numpy as np

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.data.batches import pipeline
from tf_adapters.data.rows import sampling
from tf_adapters.data.rows import splits
from tf_adapters.merging.merge import merge_adapters
from tf_adapters.merging.merge import search_weights
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.runs import experiment as experiment_lib
from tf_adapters.runs.experiment import Experiment
from tf_adapters.runs.run_folder import RunFolder
from tf_adapters.runs.run_folder import frozen_weights
from tf_adapters.training.mean_loss import mean_loss
from tf_adapters.training.trainer import Trainer

SEARCH = "search"


@dataclasses.dataclass(frozen=True)
class MergeSettings:
    """How adapters are merged.

    Attributes:
        how: See `merge_adapters`.
        weights: Numbers, `None`, or `"search"`: see `search_weights`.
        head_of: One of the adapters, a run folder: its task, head and data.
            Default: the last.
        rank: See `merge_adapters`.
        texts: Training texts of the task that units are matched by.
        examples: Training examples of the task that weights are searched on.
        evaluations: How often the search evaluates its loss.
    """

    how: str = "mean"
    weights: tuple[float, ...] | str | None = None
    head_of: str | None = None
    rank: int | None = None
    texts: int = 256
    examples: int = 64
    evaluations: int = 40


def merge_runs(adapters, model_dir, settings, data_dir=None, overwrite=False):
    """Writes a run folder of the merged adapter; returns config and result.

    It evaluates, predicts and exports as any run's. The result has the metrics
    on validation only; `--mode=eval` gives those on test.

    Args:
        adapters: List of run or adapter folders.
        model_dir: Path of the run folder.
        settings: `MergeSettings`.
        data_dir: Where the task's data are now. Default: where they were.
        overwrite: Whether a run in `model_dir` is replaced.

    Raises:
        UserError: If an adapter does not fit, or the folder holds a run.
    """
    adapters = list(adapters)
    target = settings.head_of or (adapters[-1] if adapters else None)
    _check_folder(model_dir, adapters, overwrite)
    config = _config_of(target, data_dir)
    task = splits.get_task(config)
    rows = splits.load_rows(config, task)
    base = _experiment_of_encoder(config, task)
    started = time.perf_counter()
    weights, model = _merge(adapters, settings, base, rows["train"])
    seconds = time.perf_counter() - started
    config = dataclasses.replace(config, method=model.method)
    fingerprint = sampling.fingerprints(rows)
    run = RunFolder(
        model_dir,
        config,
        fingerprint,
        overwrite,
        frozen=frozen_weights(model),
    )
    merged = _description(adapters, settings, target, weights, model)
    details = {"task": task.name, "max_length": config.data.max_length}
    run.save_adapter(model, {**details, "merged": merged})
    result = {
        **experiment_lib.facts(config, model),
        "trained_weights": 0,
        "merged": merged,
        "merging_seconds": round(seconds, 2),
        "data_fingerprint": fingerprint,
        "validation": _evaluate(config, task, rows, run.adapter_folder, base),
    }
    run.save_result(result)
    return config, result


def _check_folder(model_dir, adapters, overwrite):
    folder = Path(model_dir).resolve()
    places = [folder, folder / "adapter"]
    if any(Path(adapter).resolve() in places for adapter in adapters):
        raise ConfigError(
            f"--model_dir={model_dir} holds one of the adapters, and the "
            "merged one would replace it. Give another folder."
        )
    if (folder / "config.yaml").exists() and not overwrite:
        raise ConfigError(
            f"{model_dir} holds a run. Give another --model_dir, or "
            "--overwrite to replace it."
        )


def _config_of(target, data_dir):
    """Returns the configuration of the run whose task the result answers."""
    path = Path(target or "") / "config.yaml"
    if not path.is_file():
        raise ConfigError(
            f"--head_of={target} is no run folder: it has no config.yaml, "
            "which says what task the merged adapter answers. Name the run "
            "of one of --adapters; by default it is the last."
        )
    config = resolve.resolve_config(resolve.load_for_one_machine(path))
    config = dataclasses.replace(config, stack_on=None, init_adapter=None)
    if data_dir is None:
        return config
    data = dataclasses.replace(config.data, data_dir=data_dir)
    return resolve.with_absolute_paths(dataclasses.replace(config, data=data))


def _experiment_of_encoder(config, task):
    plain = dataclasses.replace(config, method=methods.HeadOnly())
    return Experiment(plain, task)


def _merge(adapters, settings, base, train_rows):
    """Returns the weights and the merged `AdapterModel`."""

    def some(count):
        return base.examples(
            sampling.subsample(train_rows, count, base.config.seed)
        )

    head_of, weights, inputs = settings.head_of, settings.weights, None
    if weights == SEARCH:
        weights = search_weights(
            adapters,
            base.encoder,
            _loss_on(some(settings.examples), base),
            settings.how,
            head_of,
            settings.evaluations,
        )
    if settings.how == "matched_mean":
        inputs = _as_one_batch(some(settings.texts))
    model = merge_adapters(
        adapters,
        base.encoder,
        settings.how,
        weights,
        head_of,
        inputs,
        settings.rank,
    )
    return weights, model


def _loss_on(examples, base):
    """Returns a function from a model to its mean loss on some examples."""

    @functools.cache
    def trainer_of(model):
        return Trainer(model, base.strategy, base.config, base.task.metrics)

    def loss(model):
        outputs = trainer_of(model).predict(examples)
        return mean_loss(model.head, outputs, examples)

    return loss


def _as_one_batch(examples):
    examples = dataclasses.replace(examples, targets=None, masking=None)
    batch = pipeline.Batch(
        np.arange(len(examples)), int(examples.lengths.max())
    )
    (features,) = pipeline.dataset(examples, [batch])
    return {
        name: value
        for name, value in features.items()
        if name in ("token_ids", "padding_mask", "segment_ids")
    }


def _description(adapters, settings, target, weights, model):
    """Returns what the adapter folder and the result say of the merge."""
    return {
        "how": settings.how,
        "adapters": [str(adapter) for adapter in adapters],
        "head_of": str(target),
        "weights": None if weights is None else list(weights),
        "are_searched": settings.weights == SEARCH,
        "adapter_weights": count_weights(
            variable
            for name, variable in model.trained_variables().items()
            if not name.startswith("head/")
        ),
    }


def _evaluate(config, task, rows, adapter, base):
    # Not on the test split: ways and weights of a merge are chosen among.
    experiment = Experiment(config, task, adapter, sibling=base)
    examples = experiment.examples(rows["validation"])
    return experiment.trainer.evaluate(examples)
