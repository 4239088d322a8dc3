"""Exports an adapted model as a LiteRT file, for phones and small devices.

The folder holds `model.tflite` and, if the library `tokenizers` can tokenize as
the model's packer does, `tokenizer.json`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.common import own_files
from tf_adapters.common.errors import UserError
from tf_adapters.export import encoder_folder
from tf_adapters.export import litert_file
from tf_adapters.export import parity
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.replaced_folder import replaced_folder

if TYPE_CHECKING:
    from collections.abc import Container
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Sequence
    import os

    import tensorflow as tf

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

FILE = "model.tflite"
_SHORTEST = 16


def export_run(config: Config, model_dir: str | os.PathLike[str]) -> Path:
    """Exports the adapter of a run as a LiteRT file.

    Args:
        config: `Config` of the run. Its distribution strategy is ignored.
        model_dir: Path of the run folder.

    Returns:
        Path of the folder, `<model_dir>/litert/<task>`. An existing folder is
        replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import finished_run

    run = finished_run.load_to_export(config, model_dir)
    folder = own_files.make_folder(model_dir, "litert") / run.task.name
    return export_litert(run.model, run.packer, folder)


def export_litert(
    model: AdapterModel,
    packer: Packer,
    folder: str | os.PathLike[str],
    lengths: Sequence[int] | None = None,
) -> Path:
    """Writes a model as a LiteRT file, formerly called TensorFlow Lite.

    The file has a signature `tokens_<n>` for each number of tokens `n` in
    `lengths`, which takes any batch size. Texts are padded to the next length.
    Inputs, outputs and the check are those of `export_onnx`. The metadata are
    in `metadata.json`, which is appended to the file as a ZIP archive.

    Args:
        model: `AdapterModel` with a head.
        packer: `TextPacker` as in training.
        folder: Path of the folder to write. An existing folder is replaced.
        lengths: Numbers of tokens. `None` (default) stands for 16, 32, 64 and
            so on up to the packer's maximum length, which is the last one.

    Returns:
        Path of the folder.

    Raises:
        UserError: If the model has no head, a length is not between 2 and the
            packer's maximum length, or a library of the extra `export` is not
            installed.
        AdapterError: If LiteRT lacks an operation of the model, or the file's
            outputs differ from the model's by more than 1e-4.

    Examples:
        >>> model = tf_adapters.adapt(encoder, methods.Pfeiffer(), head)
        >>> folder = tf_adapters.export_litert(model, packer, "models/films")
        >>> sorted(path.name for path in folder.iterdir())
        ['model.tflite', 'tokenizer.json']
    """
    token_outputs.check_model(model, "export_litert")
    lengths = checked_lengths(lengths, packer.max_length)
    with replaced_folder(folder) as new:
        with model.reparameterization.folded_meanwhile():
            (new / FILE).write_bytes(
                litert_file.convert(_graphs(model, lengths))
            )
            litert_file.add_metadata(
                new / FILE, token_outputs.facts(model, packer)
            )
            batches = _padded(
                parity.random_batches(model, packer),
                lengths,
                model.head.further_features,
            )
            run = litert_file.runner(new / FILE)
            parity.check(run, model, batches, "LiteRT file")
        encoder = encoder_folder.folder_of(model.encoder_info)
        tokenizer_file.write(packer, new, encoder)
    return Path(folder)


def checked_lengths(
    lengths: Sequence[int] | None, max_length: int
) -> list[int]:
    """Returns the lengths to convert, in ascending order."""
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
    """Returns a dict from the name of a signature to its function."""
    further = model.head.further_features
    shapes = model.feature_shapes()
    return {
        litert_file.signature(length): token_outputs.graph(
            model,
            {
                name: shape if name in further else (*shape[:-1], length)
                for name, shape in shapes.items()
            },
        )
        for length in lengths
    }


def _padded(
    batches: Iterable[dict[str, np.ndarray]],
    lengths: Sequence[int],
    further: Container[str],
) -> Iterator[dict[str, np.ndarray]]:
    """Yields features padded to the next length; longer ones are cut.

    Args:
        batches: Dicts of features.
        lengths: Numbers of tokens, in ascending order.
        further: Names of features that have no values for tokens.
    """
    for features in batches:
        longest = features["token_ids"].shape[-1]
        length = next((n for n in lengths if n >= longest), lengths[-1])
        yield {
            name: x if name in further else _resized(x, length)
            for name, x in features.items()
        }


def _resized(x: np.ndarray, length: int) -> np.ndarray:
    x = x[..., :length]
    missing = length - x.shape[-1]
    return np.pad(x, [*[(0, 0)] * (x.ndim - 1), (0, missing)])
