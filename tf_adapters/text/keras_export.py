"""Exports an adapted model as a `.keras` file that takes texts.

The folder holds `model.keras`, `metadata.json` and, if the library `tokenizers`
can tokenize as the model's packer does, `tokenizer.json`. Load `model.keras`
with `tf_adapters.load` or, after `from tf_adapters import TextModel`, with
`keras.saving.load_model`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from keras import ops

from tf_adapters.common import own_files
from tf_adapters.export import encoder_folder
from tf_adapters.export import parity
from tf_adapters.export import token_outputs
from tf_adapters.export import tokenizer_file
from tf_adapters.export.replaced_folder import replaced_folder
from tf_adapters.text import loading
from tf_adapters.text.text_model import TextModel

if TYPE_CHECKING:
    from collections.abc import Mapping
    import os

    import numpy as np

    from tf_adapters.config.settings import Config

FILE = "model.keras"
_METADATA_FILE = "metadata.json"


def export_run(config: Config, model_dir: str | os.PathLike[str]) -> Path:
    """Exports the text model of a run as a `.keras` file.

    The file is loaded again, and its outputs are compared with the model's.

    Args:
        config: `Config` of the run. Its distribution strategy is ignored.
        model_dir: Path of the run folder.

    Returns:
        Path of the folder, `<model_dir>/keras/<task>`. An existing folder is
        replaced.

    Raises:
        UserError: If the tokenizer cannot be saved.
        AdapterError: If the file's outputs differ from the model's.
    """
    # Imported here, so that library users can export without training code.
    from tf_adapters.runs import finished_run

    run = finished_run.load_to_export(config, model_dir)
    text_model = TextModel.of_adapter(run.model, preprocessor=run.packer)
    text_model.text_fields = run.task.text_fields
    folder = own_files.make_folder(model_dir, "keras") / run.task.name
    with replaced_folder(folder, FILE, "Keras file") as new:
        text_model.save(new / FILE)
        fields = run.task.text_fields
        facts = token_outputs.facts(run.model, run.packer, fields)
        content = json.dumps(facts, indent=2) + "\n"
        (new / _METADATA_FILE).write_text(content, encoding="utf-8")
        batches = parity.random_batches(run.model, run.packer)
        parity.check(_runner(new / FILE), run.model, batches, "Keras file")
        encoder = encoder_folder.folder_of(run.model.encoder_info)
        tokenizer_file.write(run.packer, new, encoder)
    return folder


def _runner(path: Path) -> parity.Run:
    """Returns a function that runs a `.keras` file on a dict of features."""
    model = loading.load(path).adapter_model

    def run(features: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        outputs = token_outputs.compute(model, features)
        return {k: ops.convert_to_numpy(v) for k, v in outputs.items()}

    return run
