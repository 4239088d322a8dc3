"""The precisions that the weights of an exported file may have."""

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import shown

# By format; float32 comes first. "int8" measures the range of activations in
# each batch, and "int8_static" measures it once, at export.
OF_FORMAT = {
    "onnx": ("float32", "int8", "int8_static"),
    "litert": ("float32", "int8"),
    "openvino": ("float32", "int8"),
}


def check(precision: object, form: str) -> None:
    """Raises a `ConfigError` if a file format does not support a precision.

    Args:
        precision: Value to check.
        form: File format, a key of `OF_FORMAT`.
    """
    if precision not in OF_FORMAT[form]:
        raise ConfigError(
            f"A file of the format {form} has a precision of "
            f"{', '.join(OF_FORMAT[form])}. Received: {shown(precision)}"
        )
