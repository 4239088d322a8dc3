"""PEFT's LoRA folders as our method, and back (`peft` 0.21.2)."""

import math
import re

import numpy as np

from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut
from tf_adapters.interop.peft import patterns as peft_patterns
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.layers.slot import PROJECTIONS

# Our kernel by PEFT's matrix; ours are transposed.
_MATRICES = {"down_kernel": "lora_A", "up_kernel": "lora_B"}
# What a LoRA of another kind sets, and what plain LoRA has there.
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
# Starts that change the encoder's own weights, which no folder holds.
_PLAIN_STARTS = (True, False, None, "gaussian", "orthogonal")


def read(config, shape, architecture, tensors):
    """Returns the method and a dict from our names to arrays.

    Args:
        config: `PeftConfig` of the folder.
        shape: `EncoderShape`.
        architecture: `Architecture`.
        tensors: Dict from PEFT's names, without prefixes and head, to arrays.

    Raises:
        AdapterError: If ours has no such LoRA, or tensors are missing,
            unexpected or misshaped.
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
    """Returns a dict from pairs of block and projection to the module."""
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
    """Returns rank and alpha of each module, alpha for a scale of alpha/rank.

    Args:
        config: `PeftConfig`.
        modules: Dict from any key to a module's full name, the encoder's
            before it.
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
    """Returns the blocks and projections whose product the targets are."""
    blocks = {block for block, _ in wanted}
    projections = {projection for _, projection in wanted}
    if len(wanted) != len(blocks) * len(projections):
        raise AdapterError(
            "This LoRA changes other projections in one block than in "
            "another, and that of tf_adapters the same in all that it changes."
        )
    return blocks, tuple(p for p in PROJECTIONS if p in projections)


def _even(scales, ranks, arrays):
    """Returns one alpha for all modules, and arrays of one rank.

    Where modules differ, rows and columns of zeros fill up to the largest
    rank, and `B` takes what the scales differ by.
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
    """Returns the configuration's own part and the `TensorName`s.

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
    """Returns PEFT's names of projections, or an expression that parts them.

    `output.dense` is the end of `attention.output.dense`, too. Beside an
    expression PEFT takes no list of blocks.
    """
    modules = [architecture.peft_module(p) for p in method.projections]
    both = ("attention.output.dense", "output.dense")
    if both[1] in modules and both[0] not in modules:
        modules = [architecture.projections[p] for p in method.projections]
        ends = "|".join(re.escape(module) for module in modules)
        numbers = "|".join(map(str, blocks)) if method.leave_out else r"\d+"
        return rf".*\.({numbers})\.({ends})"
    return modules
