"""Makes and runs an ONNX file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.common.extras import needs_extra
from tf_adapters.export import onnx_fusion
from tf_adapters.layers.dense import without_flattening

if TYPE_CHECKING:
    from collections.abc import Callable
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np
    import onnx
    import tensorflow as tf

_OPSET = 17


def convert(
    function: tf.types.experimental.PolymorphicFunction,
    facts: Mapping[str, str],
) -> onnx.ModelProto:
    """Converts a function to an `onnx.ModelProto`.

    Args:
        function: `tf.function` with an `input_signature`. The file's inputs and
            outputs have the same names as those of the function.
        facts: Dict from name to string, for the metadata.

    Raises:
        AdapterError: If ONNX lacks an operation of the function.
        ConfigError: If a library of the extra `export` is not installed.
    """
    with needs_extra("export", "An ONNX file"):
        import tf2onnx
    try:
        with without_flattening():
            content, _ = tf2onnx.convert.from_function(
                function, function.input_signature, opset=_OPSET
            )
    except (ValueError, NotImplementedError) as error:
        raise AdapterError(
            f"The model cannot be converted to ONNX: {error}. Export a "
            "SavedModel instead (--format=saved_model)."
        ) from error
    onnx_fusion.fuse(content)
    for name, text in facts.items():
        content.metadata_props.add(key=name, value=text)
    return content


def runner(
    path: Path,
) -> Callable[[Mapping[str, np.ndarray]], dict[str, np.ndarray]]:
    """Returns a function that runs an ONNX file.

    The function maps a dict of inputs to a dict of outputs, both by name.

    Raises:
        AdapterError: If ONNX Runtime cannot load the file, for example because
            the converter kept an operation that ONNX lacks.
    """
    with needs_extra("export", "The check of an ONNX file"):
        import onnxruntime
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # Errors only.
    try:
        session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
    # The library's errors have no common base class.
    except Exception as error:
        raise AdapterError(
            f"ONNX Runtime cannot load the converted model: {cut(error)}. "
            "Nothing was written. Export a SavedModel instead "
            "(--format=saved_model)."
        ) from error
    names = [output.name for output in session.get_outputs()]
    return lambda inputs: dict(
        zip(names, session.run(None, inputs), strict=True)
    )
