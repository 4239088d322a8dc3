"""Makes and runs a LiteRT file, formerly called TensorFlow Lite."""

from __future__ import annotations

import importlib
import json
import re
import tempfile
from typing import TYPE_CHECKING
import zipfile

import tensorflow as tf

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.extras import needs_extra
from tf_adapters.layers.activations import with_erfc

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np

    from tf_adapters.export.parity import Run

METADATA_FILE = "metadata.json"


def check_installed() -> None:
    """Raises a `ConfigError` if LiteRT, which runs the file, is missing."""
    with needs_extra("export", "A LiteRT file"):
        importlib.import_module("ai_edge_litert")


def convert(
    functions: Mapping[str, tf.types.experimental.PolymorphicFunction],
    is_quantized: bool = False,
) -> bytes:
    """Converts functions to the content of a LiteRT file.

    Args:
        functions: Dict from the name of a signature to a `tf.function` with an
            `input_signature`. Their weights are stored once.
        is_quantized: Whether to store weights in int8, in LiteRT's dynamic
            range quantization. Defaults to `False`.

    Raises:
        AdapterError: If LiteRT lacks an operation that the functions use.
    """
    module = tf.Module()
    with with_erfc(), tempfile.TemporaryDirectory() as folder:
        signatures = {
            name: function.get_concrete_function()
            for name, function in functions.items()
        }
        # Not the Keras model, whose weights the converter would not store.
        module.weights = _variables(signatures)
        tf.saved_model.save(module, folder, signatures)
        converter = tf.lite.TFLiteConverter.from_saved_model(
            folder, signature_keys=list(signatures)
        )
        if is_quantized:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        try:
            return converter.convert()
        except Exception as error:
            # The converter's error is not public.
            raise _refusal(error) from error


def _variables(
    signatures: Mapping[str, tf.types.experimental.ConcreteFunction],
) -> list[tf.Variable]:
    """Returns the variables of all signatures, without duplicates."""
    variables = [v for each in signatures.values() for v in each.variables]
    return list({id(variable): variable for variable in variables}.values())


def _refusal(error: Exception) -> AdapterError:
    return AdapterError(
        f"LiteRT cannot run this model: {_reason(error)}. Export a SavedModel "
        "(--format=saved_model) or an ONNX file instead."
    )


def _reason(error: Exception) -> str:
    """Shortens the message of an error that the converter raised."""
    found = re.search(r"TF Select ops: (.+)", str(error))
    if found:
        return f"it lacks the operation {found[1]}"
    return str(error).strip().splitlines()[0][:200]


def add_metadata(path: Path, facts: Mapping[str, str]) -> None:
    """Appends `facts` to a LiteRT file, as a ZIP archive with `metadata.json`.

    Interpreters ignore bytes after the model. `unzip -p model.tflite` prints
    the metadata.
    """
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(METADATA_FILE, json.dumps(facts, indent=2) + "\n")


def signature(length: int) -> str:
    """Returns the name of the signature for inputs of `length` tokens."""
    return f"tokens_{length}"


def runner(path: Path) -> Run:
    """Returns a function that runs a LiteRT file.

    The function maps a dict of features to a dict of outputs. It calls the
    signature for the features' number of tokens. It raises an `AdapterError` if
    LiteRT cannot run an operation of the file.
    """
    from ai_edge_litert import interpreter

    model = interpreter.Interpreter(str(path))

    def run(features: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        name = signature(features["token_ids"].shape[-1])
        try:
            return model.get_signature_runner(name)(**features)
        except RuntimeError as error:
            raise _refusal(error) from error

    return run
