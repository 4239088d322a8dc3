"""Converts LoRAs of modules that compute several projections.

ModernBERT's `Wqkv` computes queries, keys and values. PEFT's LoRA of `Wqkv` has
one matrix `A`, and one matrix `B` with rows for the queries, the keys and the
values, in this order. Our LoRA has an `A` and a `B` for each projection.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tf_adapters.interop.architectures import Architecture
    from tf_adapters.methods.lora import LoRA
    from tf_adapters.methods.method import EncoderShape


def parted(
    arrays: dict[str, np.ndarray],
    wanted: dict[tuple[int, str], str],
    architecture: Architecture,
) -> dict[str, np.ndarray]:
    """Splits LoRAs of modules that compute several projections.

    The `B` of such a module is split into one part for each projection. The `A`
    is the same for all projections.

    Args:
        arrays: Dict from our tensor names to arrays. Each projection that
            shares a module has the arrays of the whole module.
        wanted: Dict with a key `(block, projection)` for each LoRA.
        architecture: `Architecture`.
    """
    fused, found = architecture.fused, dict(arrays)
    for block, projection in wanted:
        if projection in fused:
            name = f"block_{block}_{projection}/up_kernel"
            parts = np.array_split(arrays[name], len(fused), axis=1)
            found[name] = parts[fused.index(projection)]
    return found


def joined(
    method: LoRA,
    tensors: dict[str, np.ndarray],
    shape: EncoderShape,
    architecture: Architecture,
) -> tuple[LoRA, dict[str, np.ndarray], dict[str, dict[str, float]]]:
    """Joins the LoRAs of projections that share a module.

    If all of them have the same `A` in each block, as after reading a PEFT
    folder, this `A` becomes the module's. Otherwise, their `A`s are
    concatenated, which multiplies the rank by the number of projections. The
    outputs stay the same.

    Args:
        method: `LoRA`.
        tensors: Dict from our tensor names to arrays.
        shape: `EncoderShape`.
        architecture: `Architecture`.

    Returns:
        A tuple `(method, tensors, ranks)`. In `method` and `tensors`, the
        joined LoRA is stored under the name of the module's first projection.
        `ranks` is a dict of entries for PEFT's `adapter_config.json` that set
        the module's new rank and alpha. It is empty if the rank is unchanged.
    """
    names = [name for name in method.projections if name in architecture.fused]
    if not names:
        return method, tensors, {}
    kept = [i for i, k in enumerate(method.kept_blocks(shape)) if k]
    tensors = dict(tensors)
    pairs = {
        block: [_pair(tensors, block, name, architecture) for name in names]
        for block in kept
    }
    is_shared = all(
        np.array_equal(down, of_block[0][0])
        for of_block in pairs.values()
        for down, _ in of_block
    )
    for block, of_block in pairs.items():
        downs, ups = zip(*of_block, strict=True)
        start = f"block_{block}_{names[0]}"
        tensors[f"{start}/down_kernel"] = (
            downs[0] if is_shared else np.concatenate(downs, axis=1)
        )
        tensors[f"{start}/up_kernel"] = (
            np.sum(ups, axis=0) if is_shared else np.concatenate(ups)
        )
    others = [name for name in method.projections if name not in names]
    method = dataclasses.replace(method, projections=(names[0], *others))
    if is_shared:
        return method, tensors, {}
    module = architecture.peft_module(names[0])
    return (
        method,
        tensors,
        {
            "alpha_pattern": {module: len(names) * method.alpha},
            "rank_pattern": {module: len(names) * method.rank},
        },
    )


def _pair(
    tensors: dict[str, np.ndarray],
    block: int,
    name: str,
    architecture: Architecture,
) -> tuple[np.ndarray, np.ndarray]:
    """Removes a projection's LoRA from `tensors`, and returns its `A` and `B`.

    `B` is padded with zeros to the number of outputs of the whole module.
    """
    down = tensors.pop(f"block_{block}_{name}/down_kernel")
    up = tensors.pop(f"block_{block}_{name}/up_kernel")
    columns = [np.zeros_like(up)] * len(architecture.fused)
    columns[architecture.fused.index(name)] = up
    return down, np.concatenate(columns, axis=1)
