"""Exports many tasks as one ONNX file.

The tasks share one encoder, and each has its own adapter and head. The input
`adapter_ids` selects the adapter of each row, so a batch may mix tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
import shutil
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from tf_adapters import heads
from tf_adapters.common import own_files
from tf_adapters.export import bank_answers
from tf_adapters.export import check_texts
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_file
from tf_adapters.export import parity
from tf_adapters.export import request_checks
from tf_adapters.export import task_runs
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.replaced_folder import replaced_folder
from tf_adapters.models import saving

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence
    import os

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.export.check_texts import CheckTexts
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.models.bank_model import BankModel
    from tf_adapters.tasks.task import Task

FILE = "model.onnx"


def export_runs(
    folders: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> Path:
    """Exports the adapters of several runs as one ONNX file, in float32.

    Args:
        folders: List of run folders. They must have the same encoder and
            `max_length`, and different tasks.
        output: Path of the folder to write `onnx/tasks` to.

    Returns:
        Path of the folder, `<output>/onnx/tasks`. An existing folder is
        replaced.

    Raises:
        AdapterError: If the runs do not fit together, or the file's outputs
            differ by more than 1e-4 from those of a run's own model.
    """
    bank, packer, tasks = task_runs.load(folders, precision="float32")
    folder = own_files.make_folder(output, "onnx") / "tasks"
    members = _members(folders, bank.encoder_info)
    return export_bank_onnx(bank, packer, tasks, folder, members)


def _members(
    folders: Iterable[str | os.PathLike[str]], encoder: Encoder
) -> Iterator[tuple[AdapterModel, CheckTexts]]:
    """Yields the model of each run, and the texts to check the export on.

    A model is valid until the next one is requested.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.config import resolve

    for folder in folders:
        config = resolve.load_config(Path(folder) / "config.yaml")
        texts = check_texts.texts_of_run(config)
        yield saving.load_adapter(folder, encoder), texts
        # The next model may only be built on the encoder as it was loaded.
        encoder.restore()


def export_bank_onnx(
    bank: BankModel,
    packer: Packer,
    tasks: Sequence[Task],
    folder: str | os.PathLike[str],
    members: Iterable[tuple[AdapterModel, CheckTexts]],
) -> Path:
    """Writes a bank of adapters as an ONNX file.

    The file takes any batch size and number of tokens. The inputs are the
    packer's features and `adapter_ids`, int32 `(batch,)`.
    The outputs have a row for each row of the input:

    - `logits`: the outputs of the head of the row's task, padded with -1e9 to
      the width of the widest head. If an id does not belong to a task, its row
      is NaN.
    - `probabilities`: as wide as `logits`, with 0 for classes that the row's
      task does not have.
    - `score` `(batch,)`: the number that a regression predicts.

    The file's metadata include `tasks`: a JSON object from the name of a task
    to its `adapter_id`, `head`, `labels`, `text_fields` and more.

    Args:
        bank: `BankModel` in float32.
        packer: `TextPacker` as in training.
        tasks: List with the `Task` of each member of the bank, in order.
        folder: Path of the folder to write. An existing folder is replaced.
        members: Pairs, one for each member of the bank, in order: the member's
            `AdapterModel`, and the `CheckTexts` to compare file and model on.
            The next pair is requested after the comparison.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the packer makes longer inputs than the encoder has
            positions for.
        AdapterError: If ONNX lacks an operation of the bank, or an output of
            the file differs from a model's by more than 1e-4.
    """
    bank_answers.check(bank)
    request_checks.check_packer(packer, bank.encoder)
    with replaced_folder(folder) as new:
        content = onnx_file.convert(_graph(bank), _facts(bank, packer, tasks))
        (new / FILE).write_bytes(content.SerializeToString())
        run = onnx_file.runner(new / FILE)
        for index, (model, texts) in enumerate(members):
            what = f"ONNX file for the task `{tasks[index].name}`"
            batches = texts.checked(model, packer)
            parity.check(_alone(run, index, model), model, batches, what)
        encoder = encoder_folder.folder_of(bank.encoder_info)
        if tokenizer_file.write(packer, new, encoder):
            program = Path(__file__).with_name("run_onnx_bank.py")
            shutil.copyfile(program, new / "run.py")
    return Path(folder)


def _graph(bank: BankModel) -> tf.types.experimental.PolymorphicFunction:
    """Returns a `tf.function` from int32 features to the file's outputs."""
    shapes = bank.feature_shapes()
    width = max(1, *(len(member.head.labels) for member in bank.members))

    def from_tokens(*features: Tensor) -> dict[str, Tensor]:
        inputs = dict(zip(shapes, features, strict=True))
        outputs = bank(inputs, training=False)[:, :width]
        answers = bank_answers.compute(bank, outputs, inputs["adapter_ids"])
        return {"logits": outputs, **answers}

    specs = [
        tf.TensorSpec(shape, tf.int32, name) for name, shape in shapes.items()
    ]
    return tf.function(from_tokens, autograph=False, input_signature=specs)


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


def _facts(
    bank: BankModel, packer: Packer, tasks: Sequence[Task]
) -> dict[str, str]:
    """Returns the metadata of the file as a dict from name to string."""
    described = {
        task.name: {
            "adapter_id": index,
            "head": heads.to_config(member.head),
            "labels": list(member.head.labels),
            "text_fields": list(task.text_fields),
            "adapter": member.name,
            "fingerprint": member.fingerprint,
        }
        for index, (task, member) in enumerate(
            zip(tasks, bank.members, strict=True)
        )
    }
    return {
        "tasks": json.dumps(described),
        **token_outputs.input_facts(bank.encoder_info, packer),
    }
