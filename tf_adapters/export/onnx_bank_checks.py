"""Compares an ONNX file of many tasks with the model of each task."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.export import onnx_file
from tf_adapters.export import onnx_int8
from tf_adapters.export import parity
from tf_adapters.export import quantization_quality

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Mapping
    from collections.abc import Sequence
    from pathlib import Path
    from typing import TypeAlias

    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.export.check_texts import CheckTexts
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.tasks.task import Task

    # Each task's model, and the texts on which it is compared with the file.
    Members: TypeAlias = Iterable[tuple[AdapterModel, CheckTexts]]


def compare(
    path: Path, tasks: Sequence[Task], members: Members, packer: Packer
) -> None:
    """Compares a float32 file with the model of each task.

    Args:
        path: Path of the file.
        tasks: List of the tasks, in the order of their `adapter_id`.
        members: Pairs of model and texts, one for each task, in this order.
        packer: `TextPacker` as in training.

    Raises:
        AdapterError: If an output differs by more than 1e-4.
    """
    run = onnx_file.runner(path)
    for index, (model, texts) in enumerate(members):
        what = f"ONNX file for the task `{tasks[index].name}`"
        batches = texts.checked(model, packer)
        parity.check(_alone(run, index, model), model, batches, what)


def quantize(
    source: Path,
    tasks: Sequence[Task],
    members: Members,
    packer: Packer,
    precision: str,
) -> None:
    """Replaces a float32 file with a quantized file, and compares the two.

    The float32 file is also compared with the model of each task.

    Args:
        source: Path of the float32 file, which is removed at the end.
        tasks: List of the tasks, in the order of their `adapter_id`.
        members: Pairs of model and texts, one for each task, in this order.
        packer: `TextPacker` as in training.
        precision: `"int8"`.

    Raises:
        AdapterError: If an output of the float32 file differs from a model's by
            more than 1e-4, or if too many predictions of the two files differ.
    """
    path = source.with_stem(f"{source.stem}_{precision}")
    onnx_int8.quantize(source, path, precision, calibration=())
    run, run_quantized = onnx_file.runner(source), onnx_file.runner(path)
    qualities = {}
    for index, (model, texts) in enumerate(members):
        task = tasks[index].name
        batches = list(texts.checked(model, packer))
        alone = _alone(run, index, model)
        parity.check(alone, model, batches, f"ONNX file for the task `{task}`")
        quality = quantization_quality.compare(
            model.head, alone, _alone(run_quantized, index, model), batches
        )
        print(f"{task}: The {precision} file {quality}.")
        quality.check(precision)
        qualities[task] = dataclasses.asdict(quality)
    facts = {"precision": precision, "quality": json.dumps(qualities)}
    onnx_int8.add_facts(path, facts)
    source.unlink()


def _alone(
    run: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]],
    index: int,
    model: AdapterModel,
) -> Callable[[dict[str, np.ndarray]], Mapping[str, np.ndarray]]:
    """Returns a function that runs the file with one adapter for all rows.

    Args:
        run: Function that runs the file on a dict of features.
        index: Index of the adapter.
        model: `AdapterModel` of the adapter. The returned function gives
            outputs with the same names and widths.
    """
    width = max(1, len(model.head.labels))

    def run_one(features: dict[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        ids = np.full(len(features["token_ids"]), index, "int32")
        found = run({**features, "adapter_ids": ids})
        logits = found["logits"][:, :width]
        return {
            "logits": logits,
            "outputs": logits,
            "probabilities": found["probabilities"][:, :width],
            "score": found["score"],
        }

    return run_one
