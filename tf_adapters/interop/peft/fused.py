"""LoRAs of a module that computes several of our projections.

ModernBERT's `Wqkv` computes queries, keys and values. PEFT's LoRA of it has one
matrix `A` for all three and one `B`, with rows for each of them in this order.
Ours has a pair of matrices for each projection.
"""

import numpy as np


def parted(arrays, wanted, architecture):
    """Returns arrays in which each projection has its own part of `B`.

    Args:
        arrays: Dict from our tensor names to arrays. Each fused projection has
            the whole module's.
        wanted: Dict whose keys are `(block, projection)`.
        architecture: `Architecture`.
    """
    fused, found = architecture.fused, dict(arrays)
    for block, projection in wanted:
        if projection in fused:
            name = f"block_{block}_{projection}/up_kernel"
            parts = np.array_split(arrays[name], len(fused), axis=1)
            found[name] = parts[fused.index(projection)]
    return found


def joined(tensors, wanted, architecture, rank):
    """Joins the LoRAs of projections that share a module.

    If all have the same `A` in each block, as those from a folder of PEFT, the
    module gets it. Otherwise their `A`s are put next to each other, which
    multiplies the rank by their number. The outputs are the same.

    Args:
        tensors: Dict from our tensor names to arrays.
        wanted: Dict from `(block, projection)` to the module's name.
        architecture: `Architecture`.
        rank: Rank of each of our LoRAs.

    Returns:
        Dict from the module's suffix to its rank, if that differs; `wanted`
        and `tensors`, in which `"fused"` replaces these projections.
    """
    tensors, pairs, found = dict(tensors), {}, {}
    for (block, projection), module in wanted.items():
        if projection not in architecture.fused:
            found[block, projection] = module
            continue
        start = f"block_{block}_{projection}"
        down = tensors.pop(f"{start}/down_kernel")
        up = tensors.pop(f"{start}/up_kernel")
        up = _widened(up, architecture.fused.index(projection), architecture)
        pairs.setdefault(block, []).append((down, up))
        found[block, "fused"] = module
    is_shared = all(
        np.array_equal(down, of_block[0][0])
        for of_block in pairs.values()
        for down, _ in of_block
    )
    for block, of_block in pairs.items():
        downs, ups = zip(*of_block, strict=True)
        start = f"block_{block}_fused"
        tensors[f"{start}/down_kernel"] = (
            downs[0] if is_shared else np.concatenate(downs, axis=1)
        )
        tensors[f"{start}/up_kernel"] = (
            sum(ups) if is_shared else np.concatenate(ups)
        )
    if is_shared:
        return {}, found, tensors
    number = len(next(iter(pairs.values())))
    suffix = architecture.peft_module(architecture.fused[0])
    return {suffix: rank * number}, found, tensors


def _widened(up, index, architecture):
    """Returns `(rank, outputs)` of the module; other projections' are 0."""
    columns = [np.zeros_like(up)] * len(architecture.fused)
    columns[index] = up
    return np.concatenate(columns, axis=1)
