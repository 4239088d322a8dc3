"""Checks the sizes of stored tensors against the configuration."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.methods.support import bottleneck_slots

if TYPE_CHECKING:
    import numpy as np

# If the settings imply a larger size, a stored tensor must have this size. This
# is not required of smaller sizes, because not every setting has a tensor.
_MAX_WITHOUT_TENSOR = 10_000


def check_sizes(
    method: methods.Method,
    tensors: dict[str, np.ndarray],
    width: int,
    source: str | os.PathLike[str],
) -> None:
    """Raises an error if a tensor's size disagrees with the method's settings.

    The model would find a mismatch too, but only after it has allocated
    weights, and a damaged configuration can ask for any size.

    Args:
        method: `Method`.
        tensors: Dict from our names to arrays.
        width: Width of the encoder.
        source: Path, for the error.

    Raises:
        AdapterError: If a tensor has another size, or the configuration asks
            for very large weights that are not stored.
    """
    for part in _parts(method):
        for pattern, axis, size in _sizes(part, width):
            found = {
                k: v for k, v in tensors.items() if re.fullmatch(pattern, k)
            }
            for name, tensor in found.items():
                if tensor.ndim <= axis or tensor.shape[axis] != size:
                    raise AdapterError(
                        f"{source}: `{cut(name)}` has shape {tensor.shape}; "
                        f"according to the configuration, axis {axis} has "
                        f"length {size}."
                    )
            if not found and size > _MAX_WITHOUT_TENSOR:
                raise AdapterError(
                    f"{source}: the configuration needs weights of length "
                    f"{size:,}, but no stored tensor has that length."
                )


def _parts(method: methods.Method) -> tuple[methods.Method, ...]:
    """Returns a tuple of the members of a composed method.

    For any other method, the tuple has only the method itself.
    """
    if isinstance(method, methods.Union):
        return method.parts
    if isinstance(method, methods.MultiTask):
        return (method.adapter,)
    return (method,)


def _sizes(method: methods.Method, width: int) -> list[tuple[str, int, int]]:
    """Returns the sizes that a method's settings imply for its tensors.

    Each item is a triple: a regular expression for the tensors' names, an axis,
    and the length of the axis. `width` is the width of the encoder.
    """
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
    if isinstance(method, methods.ProjectedAttention):
        return [(r".+/shared_projections/down_bias", 0, method.units)]
    if isinstance(method, methods.Compacter):
        units = bottleneck_slots.width_of_bottleneck(method, width)
        return [
            (r"block_\w+/down_bias", 0, units),
            (r"shared_factors/factors", 0, method.order),
            (r"block_\w+/down_left", 2, method.rank),
        ]
    bottlenecks = methods.BottleneckForms | bottleneck_slots.BottleneckMethod
    if isinstance(method, bottlenecks):
        units = bottleneck_slots.width_of_bottleneck(method, width)
        return [(r"block_\w+/delta/down_bias", 0, units)]
    return []
