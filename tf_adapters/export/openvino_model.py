"""Exports an adapted model for OpenVINO, which is fast on Intel's processors.

The folder holds `model.xml`, its weights in `model.bin` and, if the library
`tokenizers` can tokenize as the model's packer does, `tokenizer.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tf_adapters.common import own_files
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_file
from tf_adapters.export import openvino_file
from tf_adapters.export import parity
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.replaced_folder import replaced_folder

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

FILE = "model.xml"


def export_run(config: Config, model_dir: str | os.PathLike[str]) -> Path:
    """Exports the adapter of a run for OpenVINO.

    Args:
        config: `Config` of the run. Its distribution strategy is ignored.
        model_dir: Path of the run folder.

    Returns:
        Path of the folder, `<model_dir>/openvino/<task>`. An existing folder
        is replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import finished_run

    run = finished_run.load_to_export(config, model_dir)
    folder = own_files.make_folder(model_dir, "openvino") / run.task.name
    return export_openvino(run.model, run.packer, folder)


def export_openvino(
    model: AdapterModel, packer: Packer, folder: str | os.PathLike[str]
) -> Path:
    """Writes a model for OpenVINO, with any batch size and length.

    Inputs, outputs, metadata and the check are those of `export_onnx`. The
    metadata are in the model's runtime information, under `tf_adapters`.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training.
        folder: Path of the folder to write. An existing folder is replaced.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the model has no head, or a library of the extra `export`
            is not installed.
        AdapterError: If ONNX lacks an operation of the model, or the file's
            outputs differ from the model's by more than 1e-4.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> folder = tf_adapters.export_openvino(model, packer, "models/films")
        >>> sorted(path.name for path in folder.iterdir())
        ['model.bin', 'model.xml', 'tokenizer.json']
    """
    token_outputs.check_model(model, "export_openvino")
    facts = token_outputs.facts(model, packer)
    with replaced_folder(folder) as new:
        with model.reparameterization.folded_meanwhile():
            graph = token_outputs.graph(model, model.feature_shapes())
            converted = openvino_file.convert(
                onnx_file.convert(graph, {}), facts
            )
            openvino_file.write(converted, new / FILE)
            batches = parity.random_batches(model, packer)
            run = openvino_file.runner(new / FILE)
            parity.check(run, model, batches, "OpenVINO file")
        encoder = encoder_folder.folder_of(model.encoder_info)
        tokenizer_file.write(packer, new, encoder)
    return Path(folder)
