"""Quantizes an ONNX file to int8.

A weight matrix has a scale for each output channel, and an embedding table has
one scale. With the precision `int8`, the range of a matrix multiplication's
input is measured in each batch ("dynamic"). With `int8_static`, it is measured
once, in advance, on texts, except if there are fewer outputs than inputs.

In a file with several adapters, the adapters' weights stay in float32: they are
small, and one scale for all adapters would be too coarse for most of them.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.extras import needs_extra

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Iterator
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    import onnx

_KINDS = ("MatMul", "Gather")


def quantize(
    source: Path,
    path: Path,
    precision: str,
    calibration: Iterable[Mapping[str, np.ndarray]],
) -> None:
    """Writes a quantized copy of an ONNX file, with the same metadata.

    Args:
        source: Path of the float file.
        path: Path of the new file.
        precision: `"int8"` or `"int8_static"`.
        calibration: Batches of features on which the ranges of activations are
            measured. Used only for `"int8_static"`.
    """
    with needs_extra("export", "An ONNX file"):
        import onnx
        from onnxruntime import quantization
    content = onnx.load(source)
    facts = {fact.key: fact.value for fact in content.metadata_props}
    options = {
        "per_channel": True,
        "weight_type": quantization.QuantType.QInt8,
        # Multiplications of two activations, in attention, stay in float32.
        "extra_options": {"MatMulConstBOnly": True},
    }
    kinds = {"op_types_to_quantize": list(_KINDS)}
    with _without_hints():
        if precision == "int8":
            quantization.quantize_dynamic(
                *(content, path),
                nodes_to_exclude=_of_adapters(content),
                **kinds,
                **options,
            )
        else:
            reader: Any = _reader(
                quantization.CalibrationDataReader, calibration
            )
            later = _narrowing(content)
            quantization.quantize_static(
                *(content, path, reader),
                nodes_to_exclude=later,
                **kinds,
                **options,
            )
            quantization.quantize_dynamic(
                *(path, path), nodes_to_quantize=later, **options
            )
    content = onnx.load(path)
    onnx.helper.set_model_props(content, facts)
    path.write_bytes(content.SerializeToString())


def add_facts(path: Path, facts: Mapping[str, str]) -> None:
    """Adds entries to the metadata of an ONNX file."""
    import onnx

    content = onnx.load(path)
    for name, text in facts.items():
        content.metadata_props.add(key=name, value=text)
    path.write_bytes(content.SerializeToString())


@contextlib.contextmanager
def _without_hints() -> Iterator[None]:
    """Context manager that hides the hints that ONNX Runtime logs.

    ONNX Runtime logs its hints with the root logger.
    """

    def hide(_: logging.LogRecord) -> bool:
        return False

    logging.root.addFilter(hide)
    try:
        yield
    finally:
        logging.root.removeFilter(hide)


def _narrowing(content: onnx.ModelProto) -> list[str]:
    """Returns the names of `MatMul` nodes with fewer outputs than inputs.

    Their inputs must be quantized with a range for each batch. The input of the
    second layer of a feed-forward network has a few very large values. With a
    fixed range, the other values would be rounded to a few numbers.
    """
    shapes = {value.name: value.dims for value in content.graph.initializer}
    return [
        node.name
        for node in content.graph.node
        if node.op_type == "MatMul"
        and len(shape := shapes.get(node.input[1], ())) == 2
        and shape[0] > shape[1]
    ]


def _of_adapters(content: onnx.ModelProto) -> list[str]:
    """Returns the names of `Gather` nodes that select an adapter's weights.

    They select rows of a table of floats. The indices of the rows are computed
    from the input `adapter_ids`, which a file with several adapters has.
    """
    import onnx

    weights = {
        weight.name
        for weight in content.graph.initializer
        if weight.data_type == onnx.TensorProto.FLOAT
    }
    names, indices = [], {"adapter_ids"}
    for node in content.graph.node:
        if not indices & set(node.input):
            continue
        if node.op_type == "Gather" and node.input[0] in weights:
            names.append(node.name)
        else:
            indices.update(node.output)
    return names


def _reader(base: type, batches: Iterable[Mapping[str, np.ndarray]]) -> object:
    """Returns calibration batches as a `CalibrationDataReader`.

    ONNX Runtime defines this class, which is passed as `base`.
    """

    class Reader(base):
        def __init__(self) -> None:
            self._batches: Iterator[Mapping[str, np.ndarray]] = iter(batches)

        def get_next(self) -> Mapping[str, np.ndarray] | None:
            return next(self._batches, None)

    return Reader()
