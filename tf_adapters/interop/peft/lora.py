"""Converts PEFT's LoRA folders to our method and back (`peft` 0.21.2)."""

from __future__ import annotations

import dataclasses
import math
import re
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop import tensor_names
from tf_adapters.interop.method_table import Entry
from tf_adapters.interop.method_table import Row
from tf_adapters.interop.method_table import as_number
from tf_adapters.interop.peft import fused
from tf_adapters.interop.peft import patterns as peft_patterns
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.layers.slot import PROJECTIONS

if TYPE_CHECKING:
    from pathlib import Path

    from tf_adapters.interop.architectures import Architecture

# Dict from our kernel to PEFT's matrix, which is the kernel's transpose.
_MATRICES = {"down_kernel": "lora_A", "up_kernel": "lora_B"}


def read(
    config: dict[str, Any],
    source: Path,
    shape: methods.EncoderShape,
    architecture: Architecture,
    tensors: dict[str, np.ndarray],
) -> tuple[methods.Method, dict[str, np.ndarray]]:
    """Converts a PEFT LoRA to our method and our tensors.

    Returns the method, and a dict from our tensor names to arrays.

    Args:
        config: Dict with LoRA's keys of `adapter_config.json`.
        source: Path of the file.
        shape: `EncoderShape`.
        architecture: `Architecture`.
        tensors: Dict from PEFT's names, without prefixes, to arrays. It does
            not include the head's tensors.

    Raises:
        AdapterError: If tf_adapters has no such LoRA, or a tensor is missing,
            unexpected or has a wrong shape.
    """
    method = ENTRY.read(config, source)
    wanted = _targets(config, source, shape, architecture)
    names = _names(wanted, architecture)
    arrays = tensor_names.to_ours(names, tensors, source.parent)
    arrays = fused.parted(arrays, wanted, architecture)
    # A PEFT model without a head has names without the prefix.
    spellings = {
        key: (name, f"{architecture.prefix}.{name}")
        for key, name in wanted.items()
    }
    scales = _scales(config, source, spellings)
    blocks, projections = _grid(wanted, shape)
    ranks = {target: rank for target, (rank, _) in scales.items()}
    alpha, arrays = _even(scales, ranks, arrays)
    left_out = (i for i in range(shape.num_blocks) if i not in blocks)
    method = dataclasses.replace(
        method,
        rank=max(ranks.values()),
        alpha=alpha,
        projections=projections,
        leave_out=tuple(left_out),
    )
    return method, arrays


def _names(
    wanted: dict[tuple[int, str], str], architecture: Architecture
) -> list[TensorName]:
    return [
        TensorName(ours, (f"{theirs}.weight",), "transposed").within(
            f"block_{block}_{projection}/", f"{module}."
        )
        for (block, projection), module in wanted.items()
        for ours, theirs in _MATRICES.items()
    ]


def _targets(
    config: dict[str, Any],
    source: Path,
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> dict[tuple[int, str], str]:
    """Returns the modules that have a LoRA.

    The result is a dict from `(block, projection)` to the module's name.
    """
    is_target = peft_patterns.targets(config, source)
    found = {}
    for block in _blocks(config, shape):
        for projection, module in architecture.projections.items():
            name = architecture.module(block, module)
            names = (name, f"{architecture.prefix}.{name}")
            if is_target(names):
                found[block, projection] = name
    if not found:
        raise AdapterError(
            f"{source}: `target_modules` names no projection of a "
            f"{architecture.class_name}: {cut(config.get('target_modules'))}."
        )
    return found


def _blocks(config: dict[str, Any], shape: methods.EncoderShape) -> list[int]:
    """Returns the indices of the blocks that can have a LoRA."""
    layers = config.get("layers_to_transform")
    layers = [layers] if isinstance(layers, int) else layers
    return [i for i in range(shape.num_blocks) if not layers or i in layers]


def _scales(
    config: dict[str, Any], source: Path, modules: dict[Any, tuple[str, ...]]
) -> dict[Any, tuple[int, float]]:
    """Returns a dict from each key of `modules` to a tuple `(rank, alpha)`.

    The LoRA's scale is always alpha / rank. For rank-stabilized LoRA, alpha is
    therefore multiplied by the square root of the rank.

    Args:
        config: Dict with LoRA's keys.
        source: Path of the file, for errors.
        modules: Dict from any key to a module's names, with and without the
            encoder's prefix.
    """
    rank_of, alpha_of = peft_patterns.ranks_and_alphas(config, source)
    scales = {}
    for key, names in modules.items():
        rank, alpha = rank_of(names), alpha_of(names)
        if config.get("use_rslora"):
            alpha = alpha * math.sqrt(rank)
        scales[key] = rank, alpha
    return scales


def _grid(
    wanted: dict[tuple[int, str], str], shape: methods.EncoderShape
) -> tuple[set[int], tuple[str, ...]]:
    """Returns the blocks and the projections that have a LoRA.

    Raises:
        AdapterError: If the blocks do not all have the same projections.
    """
    blocks = {block for block, _ in wanted}
    projections = {projection for _, projection in wanted}
    if len(wanted) != len(blocks) * len(projections):
        raise AdapterError(
            "This LoRA changes different projections in different blocks, but "
            "in tf_adapters they are the same in each changed block."
        )
    return blocks, tuple(p for p in PROJECTIONS if p in projections)


def _even(
    scales: dict[tuple[int, str], tuple[int, float]],
    ranks: dict[tuple[int, str], int],
    arrays: dict[str, np.ndarray],
) -> tuple[float, dict[str, np.ndarray]]:
    """Makes the rank and the alpha of all modules equal.

    If modules differ in rank or alpha, the kernels are padded with zeros to
    the largest rank, each up-projection is multiplied by its own scale, and
    alpha becomes the rank, for a common scale of 1. Returns the alpha and the
    new arrays.
    """
    if len(set(scales.values())) == 1:
        return float(next(iter(scales.values()))[1]), arrays
    rank, result = max(ranks.values()), dict(arrays)
    for (block, projection), (own, alpha) in scales.items():
        start = f"block_{block}_{projection}"
        down, up = (f"{start}/{ours}" for ours in _MATRICES)
        missing = rank - own
        result[down] = np.pad(arrays[down], ((0, 0), (0, missing)))
        factor = np.float32(alpha / own)
        result[up] = np.pad(factor * arrays[up], ((0, missing), (0, 0)))
    return float(rank), result


def _tensor_names(
    method: methods.LoRA,
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> list[TensorName]:
    wanted = {
        (block, projection): architecture.module(
            block, architecture.projections[projection]
        )
        for block, is_kept in enumerate(method.kept_blocks(shape))
        for projection in method.projections
        if is_kept
    }
    return _names(wanted, architecture)


def _modules(
    method: methods.LoRA,
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> dict[str, Any]:
    """Returns a dict of PEFT's keys that say which modules have a LoRA."""
    blocks = [i for i, k in enumerate(method.kept_blocks(shape)) if k]
    modules = _target_modules(method, architecture, blocks)
    says_blocks = isinstance(modules, str) or not method.leave_out
    return {
        "layers_to_transform": None if says_blocks else blocks,
        "target_modules": modules,
    }


def _target_modules(
    method: methods.LoRA, architecture: Architecture, blocks: list[int]
) -> list[str] | str:
    """Returns PEFT's `target_modules`: names, or a regular expression.

    `output.dense` also matches `attention.output.dense`. If only the former is
    meant, a regular expression is needed. The expression also contains the
    blocks, because PEFT does not accept both an expression and a list of
    blocks. PEFT also ignores a list of blocks for names that begin with the
    blocks, such as ModernBERT's `layers.0.attn.Wqkv`.
    """
    modules = [architecture.peft_module(p) for p in method.projections]
    both = ("attention.output.dense", "output.dense")
    is_first = "." not in architecture.blocks and bool(method.leave_out)
    if is_first or (both[1] in modules and both[0] not in modules):
        modules = [architecture.projections[p] for p in method.projections]
        ends = "|".join(re.escape(module) for module in modules)
        numbers = "|".join(map(str, blocks)) if method.leave_out else r"\d+"
        return rf".*\.({numbers})\.({ends})"
    return modules


ENTRY = Entry(
    methods.LoRA,
    (
        Row("r", "rank"),
        Row("lora_alpha", "alpha", float, as_number),
        Row("lora_dropout", "dropout", float, float),
    ),
    _tensor_names,
    {
        "alpha_pattern": {},
        "bias": "none",
        "exclude_modules": None,
        "fan_in_fan_out": False,
        "init_lora_weights": True,
        "layers_pattern": None,
        "layers_to_transform": None,
        "lora_alpha": 8,
        "lora_dropout": 0.0,
        "peft_type": "LORA",
        "r": 8,
        "rank_pattern": {},
        "target_modules": None,
        "use_dora": False,
        "use_rslora": False,
    },
    needs={
        "bias": ("none",),
        "fan_in_fan_out": (False,),
        # Other values modify the encoder's weights, which the folder lacks.
        "init_lora_weights": (True, False, None, "gaussian", "orthogonal"),
        "lora_bias": (False,),
        "use_dora": (False,),
        "use_qalora": (False,),
    },
    ignored=("ensure_weight_tying", "megatron_core", "qalora_group_size"),
    fixed={"use_gating": False},
    of_encoder=_modules,
)
