"""Makes and runs an OpenVINO model, a pair of an XML and a binary file."""

from __future__ import annotations

import importlib
import io
import re
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.extras import needs_extra

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import onnx
    import openvino

    from tf_adapters.export.parity import Run

_FACTS = "tf_adapters"
_LARGEST = 127
# Matrices with fewer values are not quantized, as in LiteRT: it saves little.
_FEWEST_QUANTIZED = 1024
# Maps the type of an operation to the index of its input for weights.
_WEIGHTS_INPUT = {"MatMul": 1, "Gather": 0}


def check_installed() -> None:
    """Raises a `ConfigError` if OpenVINO is not installed."""
    with needs_extra("export", "An OpenVINO file"):
        importlib.import_module("openvino")


def convert(content: onnx.ModelProto) -> openvino.Model:
    """Converts an ONNX model, with its metadata, to an `openvino.Model`.

    Args:
        content: ONNX model that `onnx_file.convert` returned.

    Raises:
        AdapterError: If OpenVINO cannot read an operation of the model.
    """
    import openvino

    stream = io.BytesIO(content.SerializeToString())
    try:
        model = openvino.Core().read_model(stream)
    except RuntimeError as error:
        failed = re.search(r"-- (\S+) with a message", str(error))
        reason = f"operation {failed[1]}" if failed else "one of its operations"
        raise AdapterError(
            f"OpenVINO cannot read this model: {reason} is not converted. "
            "Export a SavedModel (--format=saved_model) or an ONNX file "
            "instead."
        ) from error
    add_facts(model, {fact.key: fact.value for fact in content.metadata_props})
    return model


def add_facts(model: openvino.Model, facts: Mapping[str, str]) -> None:
    """Adds entries to the metadata of an OpenVINO model."""
    for name, text in facts.items():
        model.set_rt_info(text, [_FACTS, name])


def quantize(model: openvino.Model) -> None:
    """Quantizes weights of matrix multiplications and embeddings, in place.

    The weights are stored in int8, with a scale for each output channel of a
    matrix and for each row of an embedding table. OpenVINO recognizes the
    operations that multiply weights by their scales, and keeps the weights in
    int8 in memory.

    Args:
        model: `openvino.Model` that `convert` returned.
    """
    for operation in model.get_ops():
        kind = operation.get_type_name()
        if kind not in _WEIGHTS_INPUT:
            continue
        place = operation.input(_WEIGHTS_INPUT[kind])
        constant = place.get_source_output().get_node()
        if _is_quantized(constant):
            axis = 1 if kind == "Gather" else 0
            scaled = _scaled(constant.data, axis)
            place.replace_source_output(scaled.output(0))


def _is_quantized(node: openvino.Node) -> bool:
    """Returns whether a node is a weight matrix that should be quantized."""
    if node.get_type_name() != "Constant":
        return False
    shape = node.get_output_shape(0)
    is_float = node.get_output_element_type(0).to_dtype() == np.float32
    count = int(np.prod(tuple(shape)))
    return is_float and len(shape) == 2 and count >= _FEWEST_QUANTIZED


def _scaled(weights: np.ndarray, axis: int) -> openvino.Node:
    """Quantizes weights to int8, with one scale for all values along `axis`.

    Returns the operation whose output is the dequantized weights.
    """
    from openvino import opset13 as operations

    largest = np.abs(weights).max(axis=axis, keepdims=True)
    scale = np.where(largest > 0, largest / _LARGEST, 1).astype("float32")
    values = operations.constant(np.rint(weights / scale).astype("int8"))
    return operations.multiply(
        operations.convert(values, "f32"), operations.constant(scale)
    )


def write(model: openvino.Model, path: Path) -> None:
    """Writes a model to `path`, an `.xml` file, and to a `.bin` file."""
    import openvino

    # By default, weights would be written in float16.
    openvino.save_model(model, path, compress_to_fp16=False)


def remove(path: Path) -> None:
    """Removes the `.xml` file of a model, and the `.bin` file next to it."""
    path.unlink()
    path.with_suffix(".bin").unlink()


def runner(path: Path) -> Run:
    """Returns a function that runs an OpenVINO model from its `.xml` file.

    The function maps a dict of inputs to a dict of outputs, both by name. It
    computes in float32. By default, OpenVINO uses bfloat16 on processors that
    support it.
    """
    import openvino

    model = openvino.compile_model(
        path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    return lambda inputs: {
        output.get_any_name(): value for output, value in model(inputs).items()
    }
