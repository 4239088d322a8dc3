"""Converts PEFT's LoRA folders to our method and back (`peft` 0.21.2)."""

import math
import re

import numpy as np

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop.peft import patterns as peft_patterns
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.layers.slot import PROJECTIONS

# From our kernel to PEFT's matrix, which is its transpose.
_MATRICES = {"down_kernel": "lora_A", "up_kernel": "lora_B"}
# Settings of LoRA variants, with the value that means plain LoRA.
_PLAIN = {
    "bias": "none",
    "fan_in_fan_out": False,
    "lora_bias": False,
    "use_dora": False,
    "use_qalora": False,
}
_KNOWN = {
    *_PLAIN,
    "alpha_pattern",
    "ensure_weight_tying",
    "exclude_modules",
    "init_lora_weights",
    "layers_pattern",
    "layers_to_transform",
    "lora_alpha",
    "lora_dropout",
    "megatron_core",
    "qalora_group_size",
    "r",
    "rank_pattern",
    "target_modules",
    "use_rslora",
}
# Initializations that leave the encoder's weights unchanged. Others modify
# them, and the modified weights are not in the folder.
_PLAIN_STARTS = (True, False, None, "gaussian", "orthogonal")


def read(config, shape, architecture, tensors):
    """Returns the method and a dict from our tensor names to arrays.

    Args:
        config: `PeftConfig` of the folder.
        shape: `EncoderShape`.
        architecture: `Architecture`.
        tensors: Dict from PEFT's names, without prefixes, to arrays. Without
            the head's.

    Raises:
        AdapterError: If tf_adapters has no such LoRA, or a tensor is missing,
            unexpected or has a wrong shape.
    """
    config.check_known(_KNOWN)
    for key, value in _PLAIN.items():
        config.check(key, value)
    config.check("init_lora_weights", *_PLAIN_STARTS)
    wanted = _targets(config, shape, architecture)
    names = _names(wanted, architecture)
    arrays = config.to_ours(names, tensors)
    full = {k: f"{architecture.prefix}.{name}" for k, name in wanted.items()}
    scales = _scales(config, full)
    blocks, projections = _grid(wanted, shape)
    ranks = {target: rank for target, (rank, _) in scales.items()}
    alpha, arrays = _even(scales, ranks, arrays)
    method = methods.LoRA(
        max(ranks.values()),
        alpha,
        float(config.get("lora_dropout", 0.0)),
        projections,
        leave_out=tuple(i for i in range(shape.num_blocks) if i not in blocks),
    )
    return method, arrays


def _names(wanted, architecture):
    return [
        TensorName(
            f"block_{block}_{projection}/{ours}",
            (f"{module}.{theirs}.weight",),
            "transposed",
        )
        for (block, projection), module in wanted.items()
        for ours, theirs in _MATRICES.items()
    ]


def _targets(config, shape, architecture):
    """Returns a dict from (block, projection) to the module's name."""
    is_named = peft_patterns.matcher(config, "target_modules")
    is_excluded = peft_patterns.matcher(config, "exclude_modules")
    found = {}
    for block in _blocks(config, shape):
        for projection, module in architecture.projections.items():
            name = architecture.module(block, module)
            names = (name, f"{architecture.prefix}.{name}")
            if is_named(names) and not is_excluded(names):
                found[block, projection] = name
    if not found:
        raise AdapterError(
            f"{config.source}: `target_modules` names no projection of a "
            f"{architecture.class_name}: {cut(config.get('target_modules'))}."
        )
    return found


def _blocks(config, shape):
    """Returns the numbers of the blocks that a folder may change."""
    layers = config.get("layers_to_transform")
    layers = [layers] if isinstance(layers, int) else layers
    return [i for i in range(shape.num_blocks) if not layers or i in layers]


def _scales(config, modules):
    """Returns a dict from key to each module's rank and alpha.

    The scale is always alpha / rank: for rank-stabilized LoRA, alpha is
    multiplied by the root of the rank.

    Args:
        config: `PeftConfig`.
        modules: Dict from any key to a module's full name, including the
            encoder's prefix.
    """
    rank_of = peft_patterns.override(config, "rank_pattern", config.get("r", 8))
    alpha_of = peft_patterns.override(
        config, "alpha_pattern", config.get("lora_alpha", 8)
    )
    scales = {}
    for key, module in modules.items():
        rank, alpha = rank_of(module), alpha_of(module)
        if config.get("use_rslora"):
            alpha = alpha * math.sqrt(rank)
        scales[key] = rank, alpha
    return scales


def _grid(wanted, shape):
    """Splits the targets into their blocks and their projections.

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


def _even(scales, ranks, arrays):
    """Returns an alpha for all modules, and arrays of equal rank.

    If modules differ in rank or alpha, the kernels are padded with zeros to
    the largest rank, each up-projection is multiplied by its own scale, and
    alpha becomes the rank, for a common scale of 1.
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


def write(method, shape, architecture):
    """Returns LoRA's part of the configuration, and the `TensorName`s.

    Args:
        method: `LoRA`.
        shape: `EncoderShape`.
        architecture: `Architecture`.

    Raises:
        AdapterError: If PEFT has no such LoRA.
    """
    if method.use_gating:
        raise AdapterError(
            "PEFT's LoRA has no gates. Export it with --format=adapterhub."
        )
    kept = [i for i, k in enumerate(method.kept_blocks(shape)) if k]
    wanted = {
        (block, projection): architecture.module(
            block, architecture.projections[projection]
        )
        for block in kept
        for projection in method.projections
    }
    alpha = float(method.alpha)
    modules = _target_modules(method, architecture, kept)
    says_blocks = isinstance(modules, str) or not method.leave_out
    config = {
        "alpha_pattern": {},
        "bias": "none",
        "exclude_modules": None,
        "fan_in_fan_out": False,
        "init_lora_weights": True,
        "layers_pattern": None,
        "layers_to_transform": None if says_blocks else kept,
        "lora_alpha": int(alpha) if alpha.is_integer() else alpha,
        "lora_dropout": float(method.dropout),
        "r": method.rank,
        "rank_pattern": {},
        "target_modules": modules,
        "use_dora": False,
        "use_rslora": False,
    }
    return config, _names(wanted, architecture)


def _target_modules(method, architecture, blocks):
    """Returns PEFT's `target_modules`: names, or a regular expression.

    `output.dense` also matches `attention.output.dense`. If only the former is
    meant, a regular expression is needed. It contains the blocks as well,
    because PEFT does not accept a list of blocks in addition to it.
    """
    modules = [architecture.peft_module(p) for p in method.projections]
    both = ("attention.output.dense", "output.dense")
    if both[1] in modules and both[0] not in modules:
        modules = [architecture.projections[p] for p in method.projections]
        ends = "|".join(re.escape(module) for module in modules)
        numbers = "|".join(map(str, blocks)) if method.leave_out else r"\d+"
        return rf".*\.({numbers})\.({ends})"
    return modules
