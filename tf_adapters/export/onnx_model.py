"""Exports an adapted model as an ONNX file, which runs without TensorFlow.

The folder holds `model.onnx` or, for int8, `model_<precision>.onnx`. If the
library `tokenizers` can tokenize as the model's packer does, the folder also
holds `tokenizer.json` and, for most heads, the program `run.py`. The program
needs ONNX Runtime, `tokenizers` and NumPy.
"""

from __future__ import annotations

import itertools
from pathlib import Path
import shutil
from typing import TYPE_CHECKING

from tf_adapters.export import check_texts
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_file
from tf_adapters.export import onnx_int8
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

# Values of `Head.signature` that run.py supports.
_ANSWERED = ("text", "windows", "words", "vectors", "choice")


def export_run(
    config: Config,
    model_dir: str | os.PathLike[str],
    precision: str = "float32",
) -> Path:
    """Exports the adapter of a run as an ONNX file.

    The file is checked on the run's validation rows.

    Args:
        config: `Config` of the run. Its distribution strategy and its precision
            are ignored.
        model_dir: Path of the run folder.
        precision: See `export_onnx`.

    Returns:
        Path of the folder, `<model_dir>/onnx/<task>`, or
        `<model_dir>/onnx_<precision>/<task>`. An existing folder is replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.export import run_export

    return run_export.export(config, model_dir, "onnx", precision, _export)


def export_onnx(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    precision: str = "float32",
    rows: Sequence[Mapping[str, Any]] = (),
    text_fields: str | Sequence[str] = (),
) -> Path:
    """Writes a model as an ONNX file.

    The file takes any batch size and number of tokens. The inputs are the
    packer's features, int32. The output of the head layer is named `logits`, or
    `outputs` if it does not hold logits. If the model classifies or scores
    texts, `probabilities` or `score` is a second output, as in a SavedModel.
    The file is compared with the model on 200 texts and on random tokens, up to
    the maximum length. Its metadata include `labels`, `text_fields`,
    `temperature`, `max_length`, `head`, `encoder`, `encoder_fingerprint` and
    `encoder_license`.

    A quantized file is compared with the float32 file on the texts. A line with
    the result is printed, and the metadata have it as `quality`.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training.
        folder: Path of the folder to write. An earlier export is replaced.
        precision: `"float32"` (default) for `model.onnx`. `"int8"` quantizes
            weights, and activations with ranges that are measured for each
            batch. `"int8_static"` measures these ranges once, on `rows`; pass
            training rows. The files are `model_int8.onnx` and
            `model_int8_static.onnx`.
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
            outputs differ from the model's by more than 1e-4, or less than 90%
            of a quantized file's predictions equal those of the float32 file
            (for numbers and vectors: the quantized outputs explain less than
            80% of the variance of the float32 outputs).

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> folder = tf_adapters.export_onnx(model, packer, "models/films")
        >>> sorted(path.name for path in folder.iterdir())
        ['model.onnx', 'run.py', 'tokenizer.json']
    """
    token_outputs.check_model(model, packer, "export_onnx")
    precisions.check(precision, "onnx")
    texts = check_texts.texts_of_rows(rows, text_fields)
    return _export(model, packer, folder, precision, texts)


def _export(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    precision: str,
    texts: CheckTexts,
) -> Path:
    with replaced_folder(folder, "model*.onnx", "ONNX file") as new:
        path = new / "model.onnx"
        _write_float(path, model, packer, texts)
        if precision != "float32":
            _quantize(path, model, packer, precision, texts)
        encoder = encoder_folder.folder_of(model.encoder_info)
        has_tokenizer = tokenizer_file.write(packer, new, encoder)
        if has_tokenizer and model.head.signature in _ANSWERED:
            program = Path(__file__).with_name("run_onnx.py")
            shutil.copyfile(program, new / "run.py")
    return Path(folder)


def _write_float(
    path: Path, model: AdapterModel, packer: Packer, texts: CheckTexts
) -> None:
    """Writes the float32 file, and compares it with the model."""
    with model.reparameterization.folded_meanwhile():
        content = onnx_file.convert(
            token_outputs.graph(model, model.feature_shapes()),
            token_outputs.facts(model, packer, texts.fields),
        )
        path.write_bytes(content.SerializeToString())
        batches = itertools.chain(
            texts.checked(model, packer),
            parity.random_batches(model, packer, rows=40),
        )
        parity.check(onnx_file.runner(path), model, batches, "ONNX file")


def _quantize(
    source: Path,
    model: AdapterModel,
    packer: Packer,
    precision: str,
    texts: CheckTexts,
) -> None:
    """Replaces a float32 file with a quantized file, and compares the two.

    `source` is the path of the float32 file, which is removed at the end.
    """
    path = source.with_name(f"model_{precision}.onnx")
    batches = texts.calibrating(model, packer)
    onnx_int8.quantize(source, path, precision, batches)
    facts = quantization_quality.report(
        model.head,
        onnx_file.runner(source),
        onnx_file.runner(path),
        texts.checked(model, packer),
        precision,
    )
    onnx_int8.add_facts(path, facts)
    source.unlink()
