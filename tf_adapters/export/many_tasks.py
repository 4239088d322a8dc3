"""Exports many tasks as one SavedModel.

The tasks share one encoder, and each has its own adapter and head. The
signature `serving_default` takes `text`, `text_pair` and `task`, string tensors
`(batch,)`, and applies to each row the adapter of its task. A batch may mix
tasks, so a server may batch any requests together.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tf_adapters.common import adapter_folder
from tf_adapters.common import own_files
from tf_adapters.common.errors import AdapterError
from tf_adapters.export import request_checks
from tf_adapters.export import saved_model
from tf_adapters.export import serving
from tf_adapters.export.many_tasks_module import INPUTS
from tf_adapters.export.many_tasks_module import ManyTasksModule

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Sequence
    import os
    from typing import Any

    from google.protobuf.message import Message

    from tf_adapters.config.settings import Config
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
    # Imported here, so that library users can export without training code.
    from tf_adapters.config import resolve
    from tf_adapters.config import task as config_task
    from tf_adapters.data.tokens.packing import TextPacker
    from tf_adapters.encoders.load import load_encoder
    from tf_adapters.models import bank_model as bank_lib

    _check_runs(folders)
    configs = [resolve.load_config(Path(f) / "config.yaml") for f in folders]
    tasks = [config_task.declared_task(config) for config in configs]
    _check_tasks(tasks)
    max_length = _common(
        configs, "data.max_length", lambda c: c.data.max_length
    )
    _check_encoders(folders)
    precision = _common(configs, "train.precision", lambda c: c.train.precision)
    quantize = _common(configs, "quantize", lambda c: c.quantize)
    encoder, tokenizer = load_encoder(
        configs[0].encoder, precision, quantize=quantize
    )
    bank = bank_lib.load_bank(folders, encoder)
    packer = TextPacker(tokenizer, max_length, encoder.takes_segments)
    folder = own_files.make_folder(output, "tasks")
    path = export_bank(bank, packer, tasks, folder)
    serving.write_models_config(Path(output))
    return path


def _check_runs(folders: Sequence[str | os.PathLike[str]]) -> None:
    for folder in folders:
        if not (Path(folder) / "config.yaml").is_file():
            raise AdapterError(
                f"{folder} is not a run folder: it has no config.yaml, which "
                "says the task and the encoder. For adapters without a run "
                "use `tf_adapters.load_bank` and `export_bank` in Python."
            )


def _check_encoders(folders: Sequence[str | os.PathLike[str]]) -> None:
    """Raises an error if the runs have different encoders.

    Compares fingerprints, because the same encoder may have several names.
    """
    names = {}
    for folder in folders:
        encoder = adapter_folder.read_adapter_config(
            adapter_folder.find_adapter_folder(folder)
        )
        encoder = encoder["encoder"]
        names[encoder["fingerprint"]] = encoder["name"]
    if len(names) > 1:
        raise AdapterError(
            "Runs in one SavedModel must have the same `encoder`. Found: "
            f"{', '.join(sorted(names.values()))}."
        )


def _check_tasks(tasks: Sequence[Task]) -> None:
    names = [task.name for task in tasks]
    for task in tasks:
        if names.count(task.name) > 1:
            raise AdapterError(
                f"Two of the adapters are of task `{task.name}`, so a request "
                "could not say which one it wants. Give one of them."
            )


def _common(
    configs: Sequence[Config], what: str, of: Callable[[Config], Any]
) -> Any:
    values = {of(config) for config in configs}
    if len(values) > 1:
        found = ", ".join(sorted(map(str, values)))
        raise AdapterError(
            f"Runs in one SavedModel must have the same `{what}`. Found: "
            f"{found}."
        )
    return values.pop()


def export_bank(
    bank: BankModel,
    packer: TextPacker,
    tasks: Sequence[Task],
    folder: str | os.PathLike[str],
) -> Path:
    """Writes the next version of a bank in TensorFlow Serving's layout.

    The answer is a dict of tensors with a value for each row:

    - `status` (string): empty, or an error message for this row. Other rows are
      answered nevertheless.
    - `label` (string) and `label_id` (int32): the predicted class.
    - `num_labels` (int32): the number of classes.
    - `labels` (string) and `probabilities` (float32), both
      `(batch, most labels)`: all classes, padded with "" and 0.
    - `score` (float32): the number that a regression predicts.

    Values that do not apply to a row are "", -1 or 0.

    Args:
        bank: `BankModel`.
        packer: `TextPacker` as in training.
        tasks: List with the `Task` of each member of the bank, in order.
        folder: Path `<parent>/<name>`. The model is served as `<name>`.

    Returns:
        Path of the version's folder, `<folder>/<version>`.

    Raises:
        UserError: If the packer makes longer inputs than the encoder has
            positions for, or if its tokenizer cannot run in a graph.
    """
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
    inputs = dict(zip(INPUTS, (text, text, names), strict=True))
    return [serving.predict_request(name, saved_model.TEXT_SIGNATURE, inputs)]


def _description(
    bank: BankModel, packer: TextPacker, tasks: Sequence[Task]
) -> dict[str, Any]:
    """Returns the model's description for clients."""
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
