"""Exports an adapted model for OpenVINO, which is fast on Intel processors.

The folder holds `model.xml`, its weights in `model.bin` and, if the library
`tokenizers` can tokenize as the model's packer does, `tokenizer.json`.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from tf_adapters.export import check_texts
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_file
from tf_adapters.export import openvino_file
from tf_adapters.export import parity
from tf_adapters.export import precisions
from tf_adapters.export import quantization_quality
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.check_texts import CheckTexts
from tf_adapters.export.replaced_folder import replaced_folder

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Sequence
    import os
    from typing import Any

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel


def export_run(
    config: Config,
    model_dir: str | os.PathLike[str],
    precision: str = "float32",
) -> Path:
    """Exports the adapter of a run for OpenVINO.

    The file is checked on the run's validation rows.

    Args:
        config: `Config` of the run. Its distribution strategy and its precision
            are ignored.
        model_dir: Path of the run folder.
        precision: See `export_openvino`.

    Returns:
        Path of the folder, `<model_dir>/openvino/<task>`, or
        `<model_dir>/openvino_int8/<task>`. An existing folder is replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.export import run_export

    return run_export.export(config, model_dir, "openvino", precision, _export)


def export_openvino(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    precision: str = "float32",
    rows: Sequence[Mapping[str, Any]] = (),
    text_fields: str | Sequence[str] = (),
) -> Path:
    """Writes a model for OpenVINO.

    The exported model takes any batch size and number of tokens. Inputs,
    outputs, metadata and the comparison with the model are those of
    `export_onnx`. The metadata are in the file's runtime information, under
    `tf_adapters`.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training.
        folder: Path of the folder to write. An earlier export is replaced.
        precision: `"float32"` (default) for `model.xml`. `"int8"` writes
            `model_int8.xml`, with weights in int8; OpenVINO quantizes
            activations in each batch.
        rows: Rows of texts to compare on, as a list of dicts; the first 200 are
            used. Defaults to built-in English sentences.
        text_fields: Names of the rows' texts, or the name of their only one;
            needed if there are rows.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the model has no head, the packer makes longer inputs than
            the encoder has positions for, or a library of the extra `export` is
            not installed. Also if another model has changed the encoder, or
            it computes in half precision.
        AdapterError: If ONNX lacks an operation of the model, the file's
            outputs differ from the model's by more than 1e-4, or the outputs of
            a quantized file differ by more than `export_onnx` allows.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> folder = tf_adapters.export_openvino(model, packer, "models/films")
        >>> sorted(path.name for path in folder.iterdir())
        ['model.bin', 'model.xml', 'tokenizer.json']
    """
    token_outputs.check_model(model, packer, "export_openvino")
    precisions.check(precision, "openvino")
    texts = check_texts.texts_of_rows(rows, text_fields)
    return _export(model, packer, folder, precision, texts)


def _export(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    precision: str,
    texts: CheckTexts,
) -> Path:
    openvino_file.check_installed()
    with replaced_folder(folder, "model*.xml", "OpenVINO file") as new:
        path = new / "model.xml"
        with model.reparameterization.folded_meanwhile():
            graph = token_outputs.graph(model, model.feature_shapes())
            facts = token_outputs.facts(model, packer, texts.fields)
            converted = openvino_file.convert(onnx_file.convert(graph, facts))
            openvino_file.write(converted, path)
            batches = itertools.chain(
                texts.checked(model, packer),
                parity.random_batches(model, packer, rows=40),
            )
            run = openvino_file.runner(path)
            parity.check(run, model, batches, "OpenVINO file")
        if precision != "float32":
            openvino_file.quantize(converted)
            quantized = path.with_stem(f"model_{precision}")
            openvino_file.write(converted, quantized)
            facts = quantization_quality.report(
                model.head,
                run,
                openvino_file.runner(quantized),
                texts.checked(model, packer),
                precision,
            )
            # Write the file again, with the quality in its metadata.
            openvino_file.add_facts(converted, facts)
            openvino_file.write(converted, quantized)
            openvino_file.remove(path)
        encoder = encoder_folder.folder_of(model.encoder_info)
        tokenizer_file.write(packer, new, encoder)
    return Path(folder)
