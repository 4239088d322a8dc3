"""Trains runs that differ in seed and learning rate as one JAX program."""

from __future__ import annotations

import gc
import json
import time
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import AdapterError
from tf_adapters.config import resolve
from tf_adapters.data.tokens.packer_choice import packer_of
from tf_adapters.models import saving
from tf_adapters.runs import compatibility
from tf_adapters.runs import earlier_runs
from tf_adapters.runs import new_model
from tf_adapters.runs import predictions
from tf_adapters.runs import run_facts
from tf_adapters.runs import run_files
from tf_adapters.runs import task_data
from tf_adapters.runs import together_checks
from tf_adapters.runs.seeded_encoder import SeededEncoder
from tf_adapters.training import device_errors
from tf_adapters.training import jax_devices
from tf_adapters.training.jax_runs_loop import RunsLoop
from tf_adapters.training.jax_runs_loop import RunStart

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tf_adapters.config.settings import Config
    from tf_adapters.data.examples import Examples
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.runs.task_data import TaskData


class TogetherTrainer:
    """Trains groups of runs on one device, and writes their run folders.

    A run has the first weights, batches and dropout masks that it has alone,
    and so the same results, but for rounding. Its folder has no log and no
    checkpoints. Equal rows of data are encoded once.
    """

    def __init__(self) -> None:
        self._encoders: dict[Any, SeededEncoder] = {}
        self._data: dict[str, TaskData] = {}
        self._encoded: dict[Any, Examples] = {}

    def train(
        self,
        configs: list[Config],
        folders: list[Path],
        declared: list[Config],
    ) -> list[str]:
        """Trains runs together.

        Args:
            configs: `Config` of each run. They differ only in `seed`,
                `train.learning_rate` and the adapters of a fusion.
            folders: Path of the run folder of each run. Each must exist.
            declared: See `RunFolder`, one for each run.

        Returns:
            For each run the text of its error, or "" if it has finished.

        Raises:
            ConfigError: If these runs cannot be trained together.
            DeviceMemoryError: If the device has too little memory for them.
        """
        # Frees the values of the group before, which refer to each other.
        gc.collect()
        advice = device_errors.memory_advice(configs[0].train)
        with device_errors.explained(advice, None, False):
            return self._train(configs, folders, declared)

    def _train(
        self,
        configs: list[Config],
        folders: list[Path],
        declared: list[Config],
    ) -> list[str]:
        started = time.perf_counter()
        for config in configs:
            together_checks.check_settings(config)
        encoder = self._encoder(configs[0])
        data = [self._load(config) for config in configs]
        models = _models(encoder, configs, data)
        examples = [
            self._examples(encoder, models[config.seed], config, own)
            for config, own in zip(configs, data, strict=True)
        ]
        together_checks.check_sizes(examples)
        # Frees the encoders that were loaded for their random numbers only.
        gc.collect()
        loop = _make_loop(configs, data, models, examples)
        loop.run()
        others = {"validation": [({}, one) for one in loop.predictions]}
        others |= _judge_others(loop, examples)
        outcomes = loop.outcomes()
        seconds = (time.perf_counter() - started) / len(configs)
        errors = []
        for number, found in enumerate(_results(outcomes, others, seconds)):
            model = models[configs[number].seed]
            with loop.values_of(number, model):
                error = found[0].get("error") or self._write(
                    *(model, configs[number], folders[number]),
                    *(declared[number], data[number], *found),
                )
            errors.append(error)
        return errors

    def _encoder(self, config: Config) -> SeededEncoder:
        key = (config.encoder, config.train.precision, config.quantize)
        jax_devices.make_devices(config)
        encoder = self._encoders.setdefault(key, SeededEncoder(*key))
        for other in self._encoders.values():
            if other is not encoder:
                other.free()
        compatibility.check_length(
            config.data.max_length, encoder.of(config.seed), config.encoder
        )
        return encoder

    def _load(self, config: Config) -> TaskData:
        settings = resolve.to_dict(config)
        # The task's first metric depends on `select_by`.
        key = json.dumps(
            [config.task, settings["data"], config.seed, config.train.select_by]
        )
        if key not in self._data:
            self._data[key] = task_data.load_task_data(config)
        return self._data[key]

    def _examples(
        self,
        encoder: SeededEncoder,
        model: AdapterModel,
        config: Config,
        data: TaskData,
    ) -> dict[str, Examples]:
        """Returns a run's `Examples` by split. Equal rows are encoded once."""
        own = encoder.of(config.seed)
        length = config.data.max_length
        packer = packer_of(encoder.tokenizer, length, own.takes_segments)
        found = {}
        for split, rows in data.rows.items():
            # The encoder has the tokenizer, and the head makes the targets.
            key = (
                *(config.encoder, length, data.task.name, repr(model.head)),
                *(data.task.text_fields, data.fingerprints[split]),
            )
            if key not in self._encoded:
                encoded = model.head.encode(
                    rows, data.task.text_fields, packer, True
                )
                together_checks.check_examples(encoded, data.task.name)
                self._encoded[key] = encoded
            found[split] = self._encoded[key]
        return found

    def _write(
        self,
        model: AdapterModel,
        config: Config,
        folder: Path,
        declared: Config,
        data: TaskData,
        result: dict[str, Any],
        compared: dict[str, Any],
    ) -> str:
        """Writes a run's folder; returns the text of an error, or ""."""
        resolve.save_config(config, folder / "config.yaml")
        if declared != config:
            resolve.save_config(declared, folder / earlier_runs.DECLARED)
        report = model.method.report(model)
        details = _details(config, data, result["validation"])
        try:
            saving.save_adapter(
                model, folder / "adapter", details, overwrite=True
            )
        except AdapterError as error:
            return str(error)
        for split, one in compared.items():
            if one:
                predictions.save_predictions(folder, split, model.head, one)
        result = {
            **run_facts.facts(config, model),
            **result,
            **({"method_report": report} if report else {}),
            **run_facts.of_pretraining(config.init_adapter),
            "data_fingerprint": data.fingerprints,
        }
        run_files.write_result(folder / "result.json", result)
        return ""


def _models(
    encoder: SeededEncoder, configs: list[Config], data: list[TaskData]
) -> dict[int, AdapterModel]:
    """Returns the new model of each seed.

    Raises:
        ConfigError: If their heads differ, or their method trains in phases.
    """
    models: dict[int, AdapterModel] = {}
    for config, own in zip(configs, data, strict=True):
        if config.seed not in models:
            models[config.seed] = new_model.make_model(
                config,
                own.task,
                encoder.of(config.seed),
                own.rows["train"],
            )
    together_checks.check_models(list(models.values()))
    return models


def _make_loop(
    configs: list[Config],
    data: list[TaskData],
    models: dict[int, AdapterModel],
    examples: list[dict[str, Examples]],
) -> RunsLoop:
    starts = [
        RunStart(
            config.seed,
            config.train,
            [variable.value for variable in models[config.seed].variables],
            own["train"],
            own["validation"],
        )
        for config, own in zip(configs, examples, strict=True)
    ]
    model = models[configs[0].seed]
    return RunsLoop(model, starts, configs[0].data, data[0].task.metrics)


def _judge_others(
    loop: RunsLoop, examples: list[dict[str, Examples]]
) -> dict[str, list[Any]]:
    """Returns metrics and predictions of the other splits, for each run."""
    return {
        split: loop.judge([own[split] for own in examples])
        for split in examples[0]
        if split not in ("train", "validation")
    }


def _results(
    outcomes: Sequence[dict[str, Any]],
    others: dict[str, list[Any]],
    seconds: float,
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Returns a part of the result, and the predictions, of each run.

    Args:
        outcomes: What `RunsLoop.outcomes` returned.
        others: What `_judge_others` returned.
        seconds: Duration of a run.
    """
    results = []
    for number, outcome in enumerate(outcomes):
        metrics, compared = {}, {}
        for split, found in others.items():
            metrics[split], compared[split] = found[number]
        metrics["validation"] = outcome.get("validation")
        result = {
            **outcome,
            **metrics,
            "training_seconds": outcome.get("seconds"),
            "seconds": round(seconds, 1),
            "trained_together": len(outcomes),
        }
        results.append((result, compared))
    return results


def _details(
    config: Config, data: TaskData, validation: dict[str, float]
) -> dict[str, Any]:
    return {
        "task": data.task.name,
        "text_fields": list(data.task.text_fields),
        "max_length": config.data.max_length,
        "validation": validation,
    }
