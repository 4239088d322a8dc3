"""Exports an adapted model as a LiteRT file, for phones and small devices.

The folder holds `model.tflite` and, if the library `tokenizers` can tokenize as
the model's packer does, `tokenizer.json`.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.export import check_texts
from tf_adapters.export import encoder_folder
from tf_adapters.export import litert_file
from tf_adapters.export import parity
from tf_adapters.export import precisions
from tf_adapters.export import quantization_quality
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.check_texts import CheckTexts
from tf_adapters.export.replaced_folder import replaced_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Mapping
    from collections.abc import Sequence
    import os
    from typing import Any

    import tensorflow as tf

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

_SHORTEST = 16


def export_run(
    config: Config,
    model_dir: str | os.PathLike[str],
    precision: str = "float32",
) -> Path:
    """Exports the adapter of a run as a LiteRT file.

    The file is checked on the run's validation rows.

    Args:
        config: `Config` of the run. Its distribution strategy and its precision
            are ignored.
        model_dir: Path of the run folder.
        precision: See `export_litert`.

    Returns:
        Path of the folder, `<model_dir>/litert/<task>`, or
        `<model_dir>/litert_int8/<task>`. An existing folder is replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.export import run_export

    return run_export.export(config, model_dir, "litert", precision, _export)


def export_litert(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    precision: str = "float32",
    rows: Sequence[Mapping[str, Any]] = (),
    text_fields: str | Sequence[str] = (),
    lengths: Sequence[int] | None = None,
) -> Path:
    """Writes a model as a LiteRT file, formerly called TensorFlow Lite.

    The file has a signature `tokens_<n>` for each number of tokens `n` in
    `lengths`. Each signature takes any batch size. Pad texts to the next length
    in `lengths`. Inputs, outputs and the comparison with the model are those of
    `export_onnx`. The metadata are in `metadata.json`, which is appended to the
    file as a ZIP archive.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training.
        folder: Path of the folder to write. An earlier export is replaced.
        precision: `"float32"` (default) for `model.tflite`. `"int8"` writes
            `model_int8.tflite`, with weights in int8 and activations quantized
            in each batch.
        rows: Rows of texts to compare on, as a list of dicts; the first 200 are
            used. Defaults to built-in English sentences.
        text_fields: Names of the rows' texts, or the name of their only one;
            needed if there are rows.
        lengths: Numbers of tokens. `None` (default) stands for 16, 32, 64 and
            so on up to the packer's maximum length, which is the last one.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the model has no head, the packer makes longer inputs than
            the encoder has positions for, a length is not between 2 and the
            packer's maximum length, or a library of the extra `export` is not
            installed. Also if another model has changed the encoder, or it
            computes in half precision.
        AdapterError: If LiteRT lacks an operation of the model, the file's
            outputs differ from the model's by more than 1e-4, or the outputs of
            a quantized file differ by more than `export_onnx` allows.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> folder = tf_adapters.export_litert(model, packer, "models/films")
        >>> sorted(path.name for path in folder.iterdir())
        ['model.tflite', 'tokenizer.json']
    """
    token_outputs.check_model(model, packer, "export_litert")
    precisions.check(precision, "litert")
    texts = check_texts.texts_of_rows(rows, text_fields)
    return _export(model, packer, folder, precision, texts, lengths)


def _export(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    precision: str,
    texts: CheckTexts,
    lengths: Sequence[int] | None = None,
) -> Path:
    litert_file.check_installed()
    lengths = checked_lengths(lengths, packer.max_length)
    with replaced_folder(folder, "model*.tflite", "LiteRT file") as new:
        path = new / "model.tflite"
        with model.reparameterization.folded_meanwhile():
            graphs = _graphs(model, lengths)
            path.write_bytes(litert_file.convert(graphs))
            batches = list(_padded(texts.checked(model, packer), lengths))
            rest = parity.random_batches(model, packer, rows=40)
            parity.check(
                litert_file.runner(path),
                model,
                itertools.chain(batches, _padded(rest, lengths)),
                "LiteRT file",
            )
            facts = token_outputs.facts(model, packer, texts.fields)
            if precision != "float32":
                source, path = path, new / f"model_{precision}.tflite"
                path.write_bytes(litert_file.convert(graphs, True))
                facts |= quantization_quality.report(
                    model.head,
                    litert_file.runner(source),
                    litert_file.runner(path),
                    batches,
                    precision,
                )
                source.unlink()
        litert_file.add_metadata(path, facts)
        encoder = encoder_folder.folder_of(model.encoder_info)
        tokenizer_file.write(packer, new, encoder)
    return Path(folder)


def checked_lengths(
    lengths: Sequence[int] | None, max_length: int
) -> list[int]:
    """Returns the sorted numbers of tokens for which to make signatures.

    `lengths` is the argument of `export_litert`. Raises a `UserError` if it is
    invalid.
    """
    if lengths is None:
        powers = (_SHORTEST * 2**i for i in range(max_length.bit_length()))
        return [*(n for n in powers if n < max_length), max_length]
    if not lengths or not all(2 <= n <= max_length for n in lengths):
        raise UserError(
            "Expected as `lengths` numbers of tokens between 2 and the "
            f"packer's maximum length, {max_length}. Received: "
            f"lengths={lengths!r:.100}"
        )
    return sorted(set(lengths))


def _graphs(
    model: AdapterModel, lengths: Sequence[int]
) -> dict[str, tf.types.experimental.PolymorphicFunction]:
    """Returns a signature for each number of tokens in `lengths`.

    The result is a dict from the name of a signature to its `tf.function`.
    """
    shapes = model.feature_shapes()
    return {
        litert_file.signature(length): token_outputs.graph(
            model, {name: (*s[:-1], length) for name, s in shapes.items()}
        )
        for length in lengths
    }


def _padded(
    batches: Iterable[dict[str, np.ndarray]], lengths: Sequence[int]
) -> Iterator[dict[str, np.ndarray]]:
    """Pads each batch of features to the smallest sufficient length.

    `lengths` are numbers of tokens in ascending order. Batches that are longer
    than the last one are truncated. Positions of masked tokens are padded too,
    because LiteRT cannot add an axis to a tensor with two unknown sizes.
    """
    for features in batches:
        longest = features["token_ids"].shape[-1]
        length = next((n for n in lengths if n >= longest), lengths[-1])
        yield {name: _resized(x, length) for name, x in features.items()}


def _resized(x: np.ndarray, length: int) -> np.ndarray:
    x = x[..., :length]
    missing = length - x.shape[-1]
    return np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, missing)])
