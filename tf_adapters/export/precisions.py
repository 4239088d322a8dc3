"""The precisions that the weights of an exported file may have."""

from collections.abc import Mapping

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown

# The precisions of each format, float32 first. "int8" measures the range of
# activations in each batch, and "int8_static" measures it once, at export.
OF_FORMAT = {
    "onnx": ("float32", "int8", "int8_static"),
    "litert": ("float32", "int8"),
    "openvino": ("float32", "int8"),
    "onnx_encoder": ("float32",),
}
# The same for a file with the adapters of several tasks.
OF_MANY_TASKS = {"onnx": ("float32", "int8")}


def check(
    precision: object,
    form: str,
    known: Mapping[str, tuple[str, ...]] = OF_FORMAT,
) -> None:
    """Raises a `ConfigError` if a file format does not support a precision.

    Args:
        precision: Value to check.
        form: File format, a key of `known`.
        known: `OF_FORMAT` (default) or `OF_MANY_TASKS`.
    """
    if precision not in known[form]:
        raise ConfigError(
            f"A file of the format {form} has a precision of "
            f"{', '.join(known[form])}. Received: {shown(precision)}"
        )
