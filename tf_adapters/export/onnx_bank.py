"""Exports many tasks as one ONNX file.

The tasks share one encoder, and each has its own adapter and head. The input
`adapter_ids` selects the adapter of each row, so a batch may mix tasks.
"""

from __future__ import annotations

import json
from pathlib import Path
import shutil
from typing import TYPE_CHECKING

import tensorflow as tf

from tf_adapters import heads
from tf_adapters.common import own_files
from tf_adapters.export import bank_answers
from tf_adapters.export import check_texts
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_bank_checks
from tf_adapters.export import onnx_file
from tf_adapters.export import precisions
from tf_adapters.export import request_checks
from tf_adapters.export import task_runs
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.replaced_folder import replaced_folder
from tf_adapters.layers.banks import users
from tf_adapters.models import saving

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Sequence
    import os

    from tf_adapters.common.types import Tensor
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.encoders.encoder import Encoder
    from tf_adapters.export.check_texts import CheckTexts
    from tf_adapters.export.onnx_bank_checks import Members
    from tf_adapters.models.adapter_model import AdapterModel
    from tf_adapters.models.bank_model import BankModel
    from tf_adapters.tasks.task import Task

FILE = "model.onnx"


def export_runs(
    folders: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
    precision: str = "float32",
) -> Path:
    """Exports the adapters of several runs as one ONNX file.

    Args:
        folders: List of run folders. They must have the same encoder and
            `max_length`, and different tasks.
        output: Path of the folder to write `onnx/tasks` to.
        precision: See `export_bank_onnx`.

    Returns:
        Path of the folder, `<output>/onnx/tasks` or `<output>/onnx_int8/tasks`.
        An existing folder is replaced.

    Raises:
        AdapterError: If the runs do not fit together, or the file's outputs
            are too different from those of a run's own model; see
            `export_bank_onnx`.
    """
    precisions.check(precision, "onnx", precisions.OF_MANY_TASKS)
    bank, packer, tasks = task_runs.load(folders, precision="float32")
    name = "onnx" if precision == "float32" else f"onnx_{precision}"
    folder = own_files.make_folder(output, name) / "tasks"
    members = _members(folders, bank.encoder_info)
    return export_bank_onnx(bank, packer, tasks, folder, members, precision)


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
    members: Members,
    precision: str = "float32",
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
        folder: Path of the folder to write. An earlier export is replaced.
        members: Pairs, one for each member of the bank, in order: the member's
            `AdapterModel`, and the `CheckTexts` to compare file and model on.
            The next pair is requested after the comparison.
        precision: `"float32"` (default) for `model.onnx`. `"int8"` writes
            `model_int8.onnx`, with the encoder's weights in int8 and the
            adapters' and heads' weights in float32. Each adapter's predictions
            are compared with those of the float32 file, as in `export_onnx`.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the packer makes longer inputs than the encoder has
            positions for, another model has changed the encoder, or it computes
            in half precision.
        AdapterError: If ONNX lacks an operation of the bank, an output of the
            float32 file differs from a model's by more than 1e-4, or a
            quantized file's predictions differ by more than `export_onnx`
            allows.
    """
    bank_answers.check(bank)
    token_outputs.check_encoder(bank, "export_bank_onnx")
    request_checks.check_packer(packer, bank.encoder)
    with replaced_folder(folder, "model*.onnx", "ONNX file") as new:
        facts = _facts(bank, packer, tasks)
        with users.for_all_examples():
            content = onnx_file.convert(_graph(bank), facts)
        path = new / FILE
        path.write_bytes(content.SerializeToString())
        if precision == "float32":
            onnx_bank_checks.compare(path, tasks, members, packer)
        else:
            onnx_bank_checks.quantize(path, tasks, members, packer, precision)
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
        named = dict(zip(shapes, features, strict=True))
        inputs = token_outputs.of_equal_shape(named)
        outputs = bank(inputs, training=False)[:, :width]
        answers = bank_answers.compute(bank, outputs, inputs["adapter_ids"])
        return {"logits": outputs, **answers}

    specs = [
        tf.TensorSpec(shape, tf.int32, name) for name, shape in shapes.items()
    ]
    return tf.function(from_tokens, autograph=False, input_signature=specs)


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
