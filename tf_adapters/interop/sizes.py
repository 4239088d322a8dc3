"""Whether tensors are as wide as their configuration says."""

import re

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut


def check_sizes(method, tensors, width, source):
    """Raises an error unless tensors have the sizes that a method makes.

    The model would find it too, but only after it has made weights of any size
    that a damaged configuration says.

    Args:
        method: `Method`.
        tensors: Dict from our names to arrays.
        width: Width of the encoder.
        source: Path, for the error.

    Raises:
        AdapterError: Names the tensor.
    """
    for part in getattr(method, "parts", (method,)):
        for pattern, axis, size in _sizes(part, width):
            for name, tensor in tensors.items():
                if not re.fullmatch(pattern, name):
                    continue
                if tensor.ndim <= axis or tensor.shape[axis] != size:
                    raise AdapterError(
                        f"{source}: `{cut(name)}` has shape {tensor.shape}; by "
                        f"the configuration axis {axis} is {size} long."
                    )


def _sizes(method, width):
    """Returns triples: a pattern of names, an axis, and its length."""
    if isinstance(method, methods.LoRA):
        return [
            (r"block_\w+/down_kernel", 1, method.rank),
            (r"block_\w+/up_kernel", 0, method.rank),
        ]
    if isinstance(method, methods.PrefixTuning):
        return [
            (r"shared_prefix/(vectors|embeddings)", 0, method.prefix_length),
            (r"shared_prefix/down_bias", 0, method.hidden_units),
        ]
    if isinstance(method, methods.PromptTuning):
        return [(r"prompt/vectors", 0, method.prompt_length)]
    if isinstance(method, methods.Invertible):
        units = max(1, int(width // 2 // method.reduction_factor))
        return [(r"invertible/(first|second)/down_bias", 0, units)]
    if isinstance(method, methods.Compacter):
        return [
            (r"block_\w+/delta/down_bias", 0, method.units),
            (r"shared_factors/factors", 0, method.order),
            (r"block_\w+/delta/down_left", 2, method.rank),
        ]
    if hasattr(method, "units"):
        return [(r"block_\w+/delta/down_bias", 0, method.units)]
    return []
