"""Exports an adapted model as an ONNX file, which needs no TensorFlow.

The folder holds `model.onnx`; `tokenizer.json`, if the library `tokenizers` can
tokenize as the model's packer does; and `run.py`, if the model classifies or
scores texts. `run.py` needs ONNX Runtime, `tokenizers` and NumPy.
"""

from __future__ import annotations

import json
from pathlib import Path
import shutil
import tempfile
from typing import TYPE_CHECKING

from keras import ops
import numpy as np
import tensorflow as tf

from tf_adapters import heads
from tf_adapters.common import adapter_folder
from tf_adapters.common import own_files
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.extras import needs_extra
from tf_adapters.export import tokenizer_file
from tf_adapters.layers.dense import without_flattening
from tf_adapters.models.adapter_model import AdapterModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    import os

    import onnx

    from tf_adapters.common.types import Tensor
    from tf_adapters.config.settings import Config
    from tf_adapters.data.tokens.packer import Packer

FILE = "model.onnx"
_OPSET = 17
_TOLERANCE = 1e-4
_CHECKED_ROWS = 200
_ROWS_AT_ONCE = 20


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
    `temperature`, `max_length`, `head`, `encoder` and `encoder_fingerprint`.

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
    _check_arguments(model)
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
        new = Path(scratch) / folder.name
        new.mkdir()
        with model.reparameterization.folded_meanwhile():
            content = _converted(model)
            _describe(content, model, packer)
            (new / FILE).write_bytes(content.SerializeToString())
            _check_outputs(new / FILE, model, packer)
        has_tokenizer = tokenizer_file.write(packer, new)
        if has_tokenizer and model.head.signature == "text":
            program = Path(__file__).with_name("run_onnx.py")
            shutil.copyfile(program, new / "run.py")
        adapter_folder.replace(folder, new)
    return folder


def _check_arguments(model: object) -> None:
    if not isinstance(model, AdapterModel) or model.head is None:
        raise UserError(
            "Expected as `model` of `export_onnx(model, packer, folder)` an "
            "`AdapterModel` with a head, as `adapt(encoder, method, head)` "
            f"returns. Received: {model!r:.100}"
        )


def _converted(model: AdapterModel) -> onnx.ModelProto:
    """Returns the model as an `onnx.ModelProto`."""
    with needs_extra("export", "An ONNX file"):
        import tf2onnx
    shapes = model.feature_shapes()
    inputs = [
        tf.TensorSpec(shape, tf.int32, name) for name, shape in shapes.items()
    ]

    @tf.function(autograph=False, input_signature=inputs)
    def from_tokens(*features: Tensor) -> dict[str, Tensor]:
        return _outputs(model, dict(zip(shapes, features, strict=True)))

    try:
        with without_flattening():
            content, _ = tf2onnx.convert.from_function(
                from_tokens, inputs, opset=_OPSET
            )
    except (ValueError, NotImplementedError) as error:
        raise AdapterError(
            f"The model cannot be converted to ONNX: {error}. Export a "
            "SavedModel instead (--format=saved_model)."
        ) from error
    return content


def _outputs(
    model: AdapterModel, features: dict[str, Tensor]
) -> dict[str, Tensor]:
    """Returns the outputs that the file should have, computed by the model."""
    outputs = ops.cast(model(features, training=False), "float32")
    name = "logits" if model.head.gives_logits else "outputs"
    answer = model.head.answer(outputs) if _is_of_texts(model.head) else {}
    # Keras's argmax uses operations that ONNX lacks, so class ids are left to
    # the caller.
    numbers = {k: v for k, v in answer.items() if v.dtype.is_floating}
    return {name: outputs, **numbers}


def _is_of_texts(head: heads.Head) -> bool:
    """Returns whether a head classifies or scores texts."""
    return head.signature in ("text", "windows")


def _describe(
    content: onnx.ModelProto, model: AdapterModel, packer: Packer
) -> None:
    """Stores what a caller needs to know in the file's metadata."""
    head, encoder = model.head, model.encoder_info
    facts = {
        "head": heads.to_config(head),
        "labels": list(head.labels),
        "temperature": head.temperature,
        "max_length": packer.max_length,
        "encoder": encoder.name,
        "encoder_fingerprint": encoder.fingerprint,
    }
    for name, value in facts.items():
        text = value if isinstance(value, str) else json.dumps(value)
        content.metadata_props.add(key=name, value=text)


def _check_outputs(path: Path, model: AdapterModel, packer: Packer) -> None:
    """Raises an `AdapterError` if the outputs of file and model differ."""
    with needs_extra("export", "The check of an ONNX file"):
        import onnxruntime
    session = onnxruntime.InferenceSession(
        str(path), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    for features in _random_batches(model, packer):
        expected = _outputs(model, features)
        found = dict(zip(names, session.run(None, features), strict=True))
        for name, value in expected.items():
            difference = np.abs(ops.convert_to_numpy(value) - found[name]).max()
            if not difference <= _TOLERANCE:
                raise AdapterError(
                    f"The ONNX file's `{name}` differs from the model's by "
                    f"{difference:.1e}, more than {_TOLERANCE:.0e}. Nothing "
                    "was written."
                )


def _random_batches(
    model: AdapterModel, packer: Packer
) -> Iterator[dict[str, np.ndarray]]:
    """Yields batches of random tokens as dicts of int32 arrays."""
    generator = np.random.default_rng(0)
    longest = packer.max_length
    embedding = model.encoder_info.backbone.token_embedding
    size = embedding.embeddings.shape[0]
    for length in np.linspace(2, longest, _CHECKED_ROWS // _ROWS_AT_ONCE):
        features = {}
        for name, shape in model.feature_shapes().items():
            rows = (_ROWS_AT_ONCE, *[3] * (len(shape) - 2), int(length))
            limit = {"token_ids": size, "padding_mask": 2}.get(name, 1)
            features[name] = generator.integers(0, limit, rows, "int32")
        features["padding_mask"][..., :2] = 1
        yield features
