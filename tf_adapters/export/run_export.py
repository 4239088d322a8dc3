"""Exports a run as a file that takes token ids, such as an ONNX file."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from tf_adapters.common import own_files
from tf_adapters.export import check_texts
from tf_adapters.export import precisions
from tf_adapters.runs import finished_run

if TYPE_CHECKING:
    from collections.abc import Callable
    import os
    from pathlib import Path

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.export.check_texts import CheckTexts
    from tf_adapters.models.adapter_model import AdapterModel

    Write = Callable[[AdapterModel, Packer, Path, str, CheckTexts], Path]


def export(
    config: Config,
    model_dir: str | os.PathLike[str],
    form: str,
    precision: str,
    write: Write,
) -> Path:
    """Writes a run's model to a file, and checks it on the validation rows.

    Args:
        config: `Config` of the run. Its distribution strategy and its precision
            are ignored.
        model_dir: Path of the run folder.
        form: Format, a key of `precisions.OF_FORMAT`.
        precision: Precision of the weights in the file.
        write: Function that writes the file. It takes the model, its packer,
            the folder to write, the precision and the `CheckTexts`.

    Returns:
        Path of the folder, `<model_dir>/<form>/<task>`, or
        `<model_dir>/<form>_<precision>/<task>`. An existing folder is replaced.
    """
    precisions.check(precision, form)
    train = dataclasses.replace(config.train, precision="float32")
    config = dataclasses.replace(config, train=train)
    run = finished_run.load_to_export(config, model_dir)
    texts = check_texts.texts_of_run(config)
    texts = dataclasses.replace(texts, fields=run.task.text_fields)
    name = form if precision == "float32" else f"{form}_{precision}"
    folder = own_files.make_folder(model_dir, name) / run.task.name
    return write(run.model, run.packer, folder, precision, texts)
