"""Exports an adapted model as an ONNX file, which needs no TensorFlow.

The folder holds `model.onnx`; `tokenizer.json`, if the library `tokenizers` can
tokenize as the model's packer does; and `run.py`, if the model classifies or
scores texts. `run.py` needs ONNX Runtime, `tokenizers` and NumPy.
"""

from __future__ import annotations

from pathlib import Path
import shutil
from typing import TYPE_CHECKING

from tf_adapters.common import own_files
from tf_adapters.export import encoder_folder
from tf_adapters.export import onnx_file
from tf_adapters.export import parity
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.replaced_folder import replaced_folder

if TYPE_CHECKING:
    import os

    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer
    from tf_adapters.models.adapter_model import AdapterModel

FILE = "model.onnx"


def export_run(config: Config, model_dir: str | os.PathLike[str]) -> Path:
    """Exports the adapter of a run as an ONNX file.

    Args:
        config: `Config` of the run. Its distribution strategy is ignored.
        model_dir: Path of the run folder.

    Returns:
        Path of the folder, `<model_dir>/onnx/<task>`. An existing folder is
        replaced.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import finished_run

    run = finished_run.load_to_export(config, model_dir)
    folder = own_files.make_folder(model_dir, "onnx") / run.task.name
    return export_onnx(run.model, run.packer, folder)


def export_onnx(
    model: AdapterModel, packer: Packer, folder: str | os.PathLike[str]
) -> Path:
    """Writes a model as an ONNX file, with any batch size and length.

    The inputs are the packer's features, int32. The output of the head layer is
    named `logits`, or `outputs` if it does not hold logits. If the model
    classifies or scores texts, `probabilities` or `score` is a second output,
    as in a SavedModel. The file is compared with the model on 200 rows of
    random tokens, up to the maximum length. Its metadata include `labels`,
    `temperature`, `max_length`, `head`, `encoder`, `encoder_fingerprint` and
    `encoder_license`.

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
        >>> folder = tf_adapters.export_onnx(model, packer, "models/films")
        >>> sorted(path.name for path in folder.iterdir())
        ['model.onnx', 'run.py', 'tokenizer.json']
    """
    token_outputs.check_model(model, "export_onnx")
    with replaced_folder(folder) as new:
        with model.reparameterization.folded_meanwhile():
            content = onnx_file.convert(
                token_outputs.graph(model, model.feature_shapes()),
                token_outputs.facts(model, packer),
            )
            (new / FILE).write_bytes(content.SerializeToString())
            batches = parity.random_batches(model, packer)
            run = onnx_file.runner(new / FILE)
            parity.check(run, model, batches, "ONNX file")
        encoder = encoder_folder.folder_of(model.encoder_info)
        has_tokenizer = tokenizer_file.write(packer, new, encoder)
        if has_tokenizer and model.head.signature == "text":
            program = Path(__file__).with_name("run_onnx.py")
            shutil.copyfile(program, new / "run.py")
    return Path(folder)
