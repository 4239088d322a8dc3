"""Exports many tasks as one SavedModel.

The tasks share one encoder, and each has its own adapter and head. The
signature `serving_default` takes `text`, `text_pair` and `task`, string tensors
`(batch,)`, and applies to each row the adapter of its task. A batch may mix
tasks, so a server may batch any requests together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
from typing import cast

from tf_adapters.common import own_files
from tf_adapters.common.errors import AdapterError
from tf_adapters.export import bank_answers
from tf_adapters.export import request_checks
from tf_adapters.export import saved_model
from tf_adapters.export import serving
from tf_adapters.export import task_runs
from tf_adapters.export.many_tasks_module import INPUTS
from tf_adapters.export.many_tasks_module import ManyTasksModule

if TYPE_CHECKING:
    from collections.abc import Sequence
    import os
    from typing import Any

    from google.protobuf.message import Message

    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.models.bank_model import BankModel
    from tf_adapters.tasks.task import Task


def export_runs(
    folders: Sequence[str | os.PathLike[str]], output: str | os.PathLike[str]
) -> Path:
    """Exports the adapters of several runs as one SavedModel.

    Args:
        folders: List of run folders. They must have the same encoder, precision
            and `max_length`, and different tasks.
        output: Path of the folder to write `tasks/<version>` to.

    Returns:
        Path of the SavedModel, `<output>/tasks/<version>`.

    Raises:
        AdapterError: If the runs do not fit together.
    """
    bank, packer, tasks = task_runs.load(folders)
    # Without TensorFlow Text, this module cannot be imported.
    packer = cast("TextPacker", packer)
    path = export_bank(
        bank, packer, tasks, own_files.make_folder(output, "tasks")
    )
    serving.write_models_config(Path(output))
    serving.write_batching_parameters(output)
    return path


def export_bank(
    bank: BankModel,
    packer: TextPacker,
    tasks: Sequence[Task],
    folder: str | os.PathLike[str],
) -> Path:
    """Writes a bank of adapters as a SavedModel for TensorFlow Serving.

    The SavedModel's answer is a dict of tensors with a value for each row:

    - `status` (string): empty, or an error message for this row. Other rows are
      answered nevertheless.
    - `label` (string) and `label_id` (int32): the predicted class. They do not
      apply to a multi-label head.
    - `num_labels` (int32): the number of classes of the row's task.
    - `labels` (string) and `probabilities` (float32), both
      `(batch, most labels)`: all classes of the row's task, padded with "" and
      0 to the largest number of classes that a task has.
    - `score` (float32): the number that a regression predicts.

    Values that do not apply to a row are "", -1 or 0.

    Args:
        bank: `BankModel`.
        packer: `TextPacker` as in training.
        tasks: List with the `Task` of each member of the bank, in order.
        folder: Path `<parent>/<name>`. The model is served as `<name>`.

    Returns:
        Path of the SavedModel, `<folder>/<version>`, the next version.

    Raises:
        UserError: If the packer makes longer inputs than the encoder has
            positions for, if its tokenizer cannot run in a graph, if a head's
            kind of output is not supported in an export, or if another model
            has changed the encoder.
    """
    bank_answers.check(bank)
    bank.check_encoder()
    request_checks.check_packer(packer, bank.encoder)
    graph_packer = saved_model.in_graph(packer)
    if graph_packer is None:
        raise AdapterError(
            "The encoder's tokenizer cannot run inside a SavedModel, which a "
            "model of many tasks needs. Use an encoder with a WordPiece, BPE "
            "or SentencePiece vocabulary."
        )
    module = ManyTasksModule(bank, graph_packer, tasks)
    return saved_model.write_version(
        folder,
        module,
        {saved_model.TEXT_SIGNATURE: module.serve},
        _warmup_requests(Path(folder).name, tasks),
        _description(bank, packer, tasks),
    )


def _warmup_requests(name: str, tasks: Sequence[Task]) -> list[Message]:
    names = [task.name for task in tasks]
    text = ["A short text."] * len(names)
    inputs: dict[str, Any] = dict(zip(INPUTS, (text, text, names), strict=True))
    return [serving.predict_request(name, saved_model.TEXT_SIGNATURE, inputs)]


def _description(
    bank: BankModel, packer: TextPacker, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Returns the dict that describes the tasks and the encoder to clients."""
    return {
        "tasks": {
            task.name: {
                "text_fields": list(task.text_fields),
                "labels": list(member.head.labels),
                "adapter": member.name,
                "fingerprint": member.fingerprint,
            }
            for task, member in zip(tasks, bank.members, strict=True)
        },
        "max_length": packer.max_length,
        "encoder": bank.encoder_info.name,
        "encoder_fingerprint": bank.encoder_info.fingerprint,
    }
