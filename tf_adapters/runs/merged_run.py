"""Merges adapters and writes a run folder with the merged adapter."""

from collections.abc import Callable
from collections.abc import Sequence
import contextlib
import dataclasses
import functools
from pathlib import Path
import time
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import encoder_inputs
from tf_adapters.data.rows import sampling
from tf_adapters.merging.merge import merge_adapters
from tf_adapters.merging.merge import search_weights
from tf_adapters.models import adapter_reading
from tf_adapters.models.variable_groups import count_weights
from tf_adapters.runs import compatibility
from tf_adapters.runs import run_facts
from tf_adapters.runs import task_data
from tf_adapters.runs.experiment import Experiment
from tf_adapters.runs.run_folder import RunFolder
from tf_adapters.runs.run_folder import frozen_weights
from tf_adapters.training.mean_loss import mean_loss

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.data.examples import Examples
    from tf_adapters.models.adapter_model import AdapterModel


SEARCH = "search"


@dataclasses.dataclass(frozen=True)
class MergeSettings:
    """Settings that say how adapters are merged.

    Attributes:
        how: See `merge_adapters`.
        weights: A number for each adapter or `None` (see `merge_adapters`), or
            `"search"` (see `search_weights`).
        head_of: Run folder of the adapter whose task, head and data are used.
            Default: the last adapter.
        rank: See `merge_adapters`.
        texts: Number of training texts with which `"matched_mean"` matches the
            adapters' units.
        examples: Number of training examples that the search for weights uses.
        evaluations: How often the search evaluates the loss.
    """

    how: str = "mean"
    weights: tuple[float, ...] | str | None = None
    head_of: str | None = None
    rank: int | None = None
    texts: int = 256
    examples: int = 64
    evaluations: int = 40


class MergeTarget:
    """The task, data and encoder for which adapters are merged.

    If the same adapters are merged in several ways, create this object once.

    Args:
        folder: Path of the run folder that has the task's configuration and
            the trained head.
        data: Dict of settings `data.*` that replace those of the run, such as
            `data_dir` if the data have moved. Default: none.

    Raises:
        UserError: If the folder is not that of a run, or its head has other
            classes than the data have now.
    """

    def __init__(
        self, folder: Path, data: dict[str, Any] | None = None
    ) -> None:
        self.config = _config_of(folder, data or {})
        self.data = task_data.load_task_data(self.config)
        plain = dataclasses.replace(self.config, method=methods.HeadOnly())
        self.base = Experiment(plain, self.data.task)
        # A new head would number the classes of the data as they are now.
        stored = adapter_reading.read_adapter(folder, self.base.encoder)
        self.head: Any = stored.head
        compatibility.check_labels(self.head, self.data.task, folder)

    def examples(self, count: int | None = None) -> "Examples":
        """Returns all validation examples, or `count` training examples."""
        rows = self.data.rows["validation"]
        if count is not None:
            train = self.data.rows["train"]
            rows = sampling.subsample(train, count, self.config.seed)
        fields = self.data.task.text_fields
        encoded = self.head.encode(rows, fields, self.base.packer, True)
        return pipeline.to_tensors(encoded)


def merge_runs(
    adapters: Sequence[Any],
    model_dir: Any,
    settings: Any,
    target: Any = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Merges adapters, writes a run folder, and returns the result.

    The merged adapter can be evaluated, used and exported like the adapter of
    any run. The result has metrics of the validation split only;
    `--mode=eval` evaluates the test split too.

    Args:
        adapters: List of run or adapter folders.
        model_dir: Path of the new run folder.
        settings: `MergeSettings`.
        target: `MergeTarget`. Default: the target of `settings.head_of`.
        overwrite: Whether to replace a run in `model_dir`. Default: `False`.

    Returns:
        Dict, the content of `result.json`.

    Raises:
        UserError: If an adapter does not fit, or `model_dir` holds a run and
            `overwrite` is `False`.
    """
    adapters = list(adapters)
    _check_folder(model_dir, adapters, overwrite)
    head_of = settings.head_of or (adapters or [None])[-1]
    target = target or MergeTarget(head_of)
    started = time.perf_counter()
    weights, model = _merge(adapters, settings, target)
    seconds = time.perf_counter() - started
    # Users compare ways to merge by this score, so it must not be computed on
    # the test split.
    validation = target.base.trainer_of(model).evaluate(target.examples())
    config = dataclasses.replace(target.config, method=model.method)
    run = RunFolder(
        model_dir,
        config,
        target.data.fingerprints,
        overwrite,
        frozen=frozen_weights(model),
    )
    with contextlib.closing(run):
        merged = _description(adapters, settings, head_of, weights, model)
        details = {
            "task": target.data.task.name,
            "text_fields": list(target.data.task.text_fields),
            "max_length": config.data.max_length,
            "merged": merged,
            "validation": validation,
        }
        run.save_adapter(model, details)
        result = {
            **run_facts.facts(config, model),
            "trained_weights": 0,
            "merged": merged,
            "merging_seconds": round(seconds, 2),
            "data_fingerprint": target.data.fingerprints,
            "validation": validation,
        }
        run.save_result(result)
    return result


def _check_folder(
    model_dir: "str | os.PathLike[str]", adapters: Any, overwrite: bool
) -> None:
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


def _config_of(target: Any, data: dict[str, Any]) -> "Config":
    """Returns the `Config` of the run that sets the merged adapter's task.

    `target` is the run folder. `data` are settings that replace those of the
    run's data.
    """
    path = Path(target or "") / "config.yaml"
    if not path.is_file():
        raise ConfigError(
            f"--head_of={target} is not a run folder: it has no config.yaml, "
            "which says what task the merged adapter answers. Name the run of "
            "one of --adapters; by default it is the last."
        )
    saved = resolve.load_for_one_machine(path)
    config = resolve.resolve_config(saved, {"data": data})
    config = dataclasses.replace(config, stack_on=None, init_adapter=None)
    return resolve.with_absolute_paths(config) if data else config


def _merge(
    adapters: Any, settings: Any, target: Any
) -> "tuple[Any, AdapterModel]":
    """Merges adapters; searches for their weights if the settings say so.

    Returns the weight of each adapter, and the merged `AdapterModel`.
    """
    encoder, inputs, weights = target.base.encoder, None, settings.weights
    if weights == SEARCH:
        weights = search_weights(
            adapters,
            encoder,
            _loss_on(target.examples(settings.examples), target),
            settings.how,
            settings.head_of,
            settings.evaluations,
        )
    if settings.how == "matched_mean":
        inputs = _as_one_batch(target.examples(settings.texts))
    model = merge_adapters(
        adapters,
        encoder,
        settings.how,
        weights,
        settings.head_of,
        inputs,
        settings.rank,
    )
    return weights, model


def _loss_on(examples: Any, target: Any) -> Callable[..., Any]:
    """Returns a function that computes a model's mean loss on examples."""
    trainer_of = functools.cache(target.base.trainer_of)

    def loss(model: Any) -> Any:
        outputs = trainer_of(model).predict(examples)
        return mean_loss(model.head, outputs, examples)

    return loss


def _as_one_batch(examples: Any) -> dict[str, Any]:
    examples = dataclasses.replace(examples, targets=None, masking=None)
    batch = batch_plan.Batch(
        np.arange(len(examples)), int(examples.lengths.max())
    )
    (features,) = pipeline.dataset(examples, [batch])
    return encoder_inputs(features)


def _description(
    adapters: Any, settings: Any, head_of: Any, weights: Any, model: Any
) -> dict[str, Any]:
    """Returns a dict that says how adapters were merged.

    It is stored in the adapter folder and in the result.
    """
    return {
        "how": settings.how,
        "adapters": [str(adapter) for adapter in adapters],
        "head_of": str(head_of),
        "weights": None if weights is None else list(weights),
        "are_searched": settings.weights == SEARCH,
        "adapter_weights": count_weights(
            variable
            for name, variable in model.trained_variables().items()
            if not name.startswith("head/")
        ),
    }
