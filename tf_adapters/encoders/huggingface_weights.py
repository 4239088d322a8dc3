"""Ports the tensors of a Hugging Face checkpoint to a backbone's variables.

The tables map the path of a KerasHub layer to the name of the PyTorch module.
Variables are found by their public paths, so no private attributes of KerasHub
are used.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut

if TYPE_CHECKING:
    import keras
    import keras_hub

    from tf_adapters.encoders.huggingface_checkpoint import (
        HuggingFaceCheckpoint,
    )
    from tf_adapters.encoders.huggingface_family import Family


_BERT_BLOCK = {
    "self_attention_layer/query": "attention.self.query",
    "self_attention_layer/key": "attention.self.key",
    "self_attention_layer/value": "attention.self.value",
    "self_attention_layer/attention_output": "attention.output.dense",
    "self_attention_layer_norm": "attention.output.LayerNorm",
    "feedforward_intermediate_dense": "intermediate.dense",
    "feedforward_output_dense": "output.dense",
    "feedforward_layer_norm": "output.LayerNorm",
}
_DISTILBERT_BLOCK = {
    "self_attention_layer/query": "attention.q_lin",
    "self_attention_layer/key": "attention.k_lin",
    "self_attention_layer/value": "attention.v_lin",
    "self_attention_layer/attention_output": "attention.out_lin",
    "self_attention_layer_norm": "sa_layer_norm",
    "feedforward_intermediate_dense": "ffn.lin1",
    "feedforward_output_dense": "ffn.lin2",
    "feedforward_layer_norm": "output_layer_norm",
}


def blocks_of(
    block: dict[str, str], module: str, layer: str = "transformer_layer_{}"
) -> dict[str, str]:
    """Returns a dict from layer paths in a backbone's blocks to module names.

    Paths and names contain `{}` instead of a block's number, so that the dict
    is valid for all blocks.

    Args:
        block: Dict from the path of a layer in KerasHub's block to the module
            in the checkpoint's block.
        module: Name of a block in the checkpoint, with `{}`.
        layer: Path of a block in the backbone, with `{}`. Defaults to
            `"transformer_layer_{}"`.
    """
    return {f"{layer}/{k}": f"{module}.{v}" for k, v in block.items()}


def _modules(
    block: dict[str, str], blocks: str, **outside: str
) -> dict[str, str]:
    """Returns a dict from a BERT-like backbone's layer paths to module names.

    Args:
        block: See `blocks_of`.
        blocks: Name of the list of blocks in the checkpoint.
        **outside: Module names of the layers outside of blocks, by layer path.
    """
    norm = {"embeddings_layer_norm": "embeddings.LayerNorm"}
    return {**outside, **norm, **blocks_of(block, f"{blocks}.{{}}")}


BERT = _modules(
    _BERT_BLOCK,
    "encoder.layer",
    token_embedding="embeddings.word_embeddings",
    position_embedding="embeddings.position_embeddings",
    segment_embedding="embeddings.token_type_embeddings",
    pooled_dense="pooler.dense",
)
ELECTRA = {**BERT, "embeddings_projection": "embeddings_project"}
_TOKEN_AND_POSITION = {
    "token_embedding": "embeddings.word_embeddings",
    "position_embedding": "embeddings.position_embeddings",
}
ROBERTA = _modules(
    _BERT_BLOCK,
    "encoder.layer",
    **{f"embeddings/{k}": v for k, v in _TOKEN_AND_POSITION.items()},
)
DISTILBERT = _modules(
    _DISTILBERT_BLOCK,
    "transformer.layer",
    **{
        f"token_and_position_embedding/{k}": v
        for k, v in _TOKEN_AND_POSITION.items()
    },
)

_SUFFIXES = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "embeddings": "weight",
    "rel_embedding": "weight",
}
_EMBEDDINGS = (
    "embeddings.word_embeddings.weight",
    "embeddings.tok_embeddings.weight",
)
_POSITIONS = "embeddings.position_embeddings.weight"
_TOKEN_TYPES = "embeddings.token_type_embeddings.weight"
# Prefixes of encoder tensors. All others belong to a head or a pooler.
_ENCODER = (
    "embeddings.",
    "embeddings_project.",
    "encoder.",
    "final_norm.",
    "layers.",
    "transformer.",
)
# Constants that old versions of transformers saved like weights.
_CONSTANTS = ("embeddings.position_ids", "embeddings.token_type_ids")

# Names of the output matrix in the checkpoints that store it.
OUTPUTS = (
    "cls.predictions.decoder.weight",
    "lm_head.decoder.weight",
    "vocab_projector.weight",
    "generator_lm_head.weight",
    "predictions.decoder.weight",
    "decoder.weight",
)


def port_weights(
    backbone: keras_hub.models.Backbone,
    checkpoint: HuggingFaceCheckpoint,
    family: Family,
    first_position: int = 0,
) -> bool:
    """Assigns the tensors of a checkpoint to a backbone's variables.

    Args:
        backbone: KerasHub backbone, built.
        checkpoint: `HuggingFaceCheckpoint`.
        family: The checkpoint's `Family`.
        first_position: Index of a text's first token in the checkpoint's
            position embeddings. Defaults to 0.

    Returns:
        Whether the checkpoint has a pooler that the backbone can use. If not,
        the backbone's own pooler must not be used. Its weights are set to zero,
        because random weights would differ each time.

    Raises:
        UserError: If a tensor is missing, is damaged or does not have the shape
            in the config, or if the checkpoint has encoder tensors that do not
            exist in the backbone.
    """
    names = {
        v.path: _tensor_name(v.path, family.modules) for v in backbone.weights
    }
    names = {k: _stored_name(v, checkpoint) for k, v in names.items()}
    pooler = names.get("pooled_dense/kernel")
    # KerasHub's ELECTRA has a pooler, but no checkpoint does.
    has_pooler = pooler in checkpoint.names
    if not has_pooler:
        names = {k: v for k, v in names.items() if "pooled_dense/" not in k}
    folded = {_TOKEN_TYPES} if family.has_token_type_row else set()
    _check_names(set(names.values()) | folded, checkpoint)
    for variable in backbone.weights:
        if variable.path not in names:
            variable.assign(np.zeros(variable.shape, "float32"))
            continue
        name = names[variable.path]
        tensor = checkpoint.read(name)
        if name == _POSITIONS:
            tensor = tensor[first_position:]
            if family.has_token_type_row:
                # RoBERTa adds row 0 of its token types to every token. KerasHub
                # does not, so the row is added to all position embeddings.
                tensor = tensor + checkpoint.read(_TOKEN_TYPES)[0]
        variable.assign(_fit(tensor, variable, name, checkpoint))
    return has_pooler


def _tensor_name(path: str, modules: dict[str, str]) -> str:
    layer, _, variable = path.rpartition("/")
    number = r"_(\d+)(?=[_/])"
    module = modules[re.sub(number, "_{}", layer)]
    return f"{module.format(*re.findall(number, layer))}.{_SUFFIXES[variable]}"


def _stored_name(name: str, checkpoint: HuggingFaceCheckpoint) -> str:
    """Returns the name under which a checkpoint has a tensor.

    If the output matrix of a head for masked tokens is the token embedding,
    safetensors may store it under the name of the output matrix only.
    """
    outputs = sorted(checkpoint.names.intersection(OUTPUTS))
    is_stored = name in checkpoint.names or name not in _EMBEDDINGS
    return name if is_stored or not outputs else outputs[0]


def _check_names(expected: set[str], checkpoint: HuggingFaceCheckpoint) -> None:
    missing = sorted(expected - checkpoint.names)
    if missing:
        raise UserError(
            f"The weights in `{checkpoint.folder}` are incomplete: "
            f"{len(missing)} of {len(expected)} tensors are missing, among "
            f"them {cut(missing[:3])}. Check that the weights belong to this "
            "config.json."
        )
    unused = sorted(
        name
        for name in checkpoint.names - expected
        if name.startswith(_ENCODER)
        and name not in _CONSTANTS
        # Rests of DeBERTa's pretraining, which no model of transformers reads.
        and not name.endswith("._weight")
    )
    if unused:
        raise UserError(
            f"`{checkpoint.folder}` holds encoder weights that its config.json "
            f"does not describe: {cut(unused[:3])} and "
            f"{max(len(unused) - 3, 0)} more. Without them the outputs would "
            "differ from the checkpoint's; check the number of layers in "
            "config.json."
        )


def _fit(
    tensor: np.ndarray,
    variable: keras.Variable,
    name: str,
    checkpoint: HuggingFaceCheckpoint,
) -> np.ndarray:
    """Converts a PyTorch tensor to the layout of a Keras variable.

    Raises:
        UserError: If the tensor's shape does not fit the variable.
    """
    shape = tuple(variable.shape)
    is_kernel = variable.path.endswith("/kernel")
    expected = shape
    if is_kernel:
        # PyTorch's kernels have shape (out, in). In KerasHub, attention has an
        # axis for heads: the output kernel is (heads, head width, out), and the
        # other kernels are (in, heads, head width).
        is_output = "/attention_output/" in variable.path
        split = len(shape) - 1 if is_output else 1
        expected = (math.prod(shape[split:]), math.prod(shape[:split]))
    elif variable.path.endswith("/bias"):
        expected = (math.prod(shape),)
    if tensor.shape != expected:
        raise UserError(
            f"Tensor `{name}` in `{checkpoint.folder}` does not fit its "
            f"config.json. Expected: shape {expected}. Received: shape "
            f"{tensor.shape}"
        )
    tensor = tensor.T if is_kernel else tensor
    return np.reshape(tensor, shape)
