"""A post-norm transformer encoder in NumPy. Imports nothing of ours.

Vaswani et al. 2017, arXiv:1706.03762, with the embeddings of Devlin et al.
2018, arXiv:1810.04805. Weights come as a dict from KerasHub's variable paths.
"""

import math

import numpy as np
from scipy import special

ACTIVATIONS = {
    "gelu": lambda x: x * 0.5 * (1 + special.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "relu": lambda x: np.maximum(x, 0),
}


def encode(weights, features, num_heads, activation, epsilon):
    """Computes an encoder in float64.

    Args:
        weights: Dict from variable path to array.
        features: Dict of `token_ids`, `padding_mask` and, where there are
            segment embeddings, `segment_ids`; `(batch, tokens)` each.
        num_heads: Number of attention heads.
        activation: Key of `ACTIVATIONS`.
        epsilon: Of every layer norm.

    Returns:
        List of the embedding output and each block's output.
    """
    states = [_embed(weights, features, epsilon)]
    while block := _inside(weights, f"transformer_layer_{len(states) - 1}/"):
        settings = (num_heads, epsilon, ACTIVATIONS[activation])
        bias = _relative_bias(weights, features["token_ids"].shape[1])
        mask = features["padding_mask"]
        x = _block(block, states[-1], mask, bias, *settings)
        states.append(x)
    return states


def pool(weights, sequence_output):
    """Returns the pooled output of BERT."""
    return np.tanh(_dense(weights, "pooled_dense", sequence_output[:, 0]))


def _inside(weights, prefix):
    return {
        path.removeprefix(prefix): np.float64(value)
        for path, value in weights.items()
        if path.startswith(prefix)
    }


def _embed(weights, features, epsilon):
    tables = {
        path.split("/")[-2]: table
        for path, table in weights.items()
        if path.endswith("_embedding/embeddings")
    }
    ids = features["token_ids"]
    x = np.float64(tables["token_embedding"][ids])
    x = x + tables["position_embedding"][: ids.shape[1]]
    if "segment_embedding" in tables:
        x = x + tables["segment_embedding"][features["segment_ids"]]
    x = _norm(weights, "embeddings_layer_norm", x, epsilon)
    if "embeddings_projection/kernel" in weights:
        x = _dense(weights, "embeddings_projection", x)
    return x


def _relative_bias(weights, tokens):
    """Returns MPNet's bias (heads, queries, keys); Song et al. 2020."""
    table = weights.get("relative_position_bias/embeddings")
    if table is None:
        return 0
    distances = np.arange(tokens)[None] - np.arange(tokens)[:, None]
    half = len(table) // 2
    exact, far = half // 2, np.abs(distances)
    steps = np.log2(np.maximum(far, 1) / exact) / np.log2(128 / exact)
    logarithmic = exact + np.floor(steps * (half - exact)).astype(int)
    buckets = np.where(far < exact, far, np.minimum(logarithmic, half - 1))
    return table[buckets + half * (distances > 0)].transpose(2, 0, 1)


def _block(weights, x, mask, bias, num_heads, epsilon, activation):
    attended = _attention(weights, x, mask, bias, num_heads)
    x = _norm(weights, "self_attention_layer_norm", x + attended, epsilon)
    inner = activation(_dense(weights, "feedforward_intermediate_dense", x))
    outer = _dense(weights, "feedforward_output_dense", inner)
    return _norm(weights, "feedforward_layer_norm", x + outer, epsilon)


def _attention(weights, x, mask, bias, num_heads):
    batch, tokens, width = x.shape

    def heads(name):
        kernel = weights[f"self_attention_layer/{name}/kernel"]
        bias = weights[f"self_attention_layer/{name}/bias"]
        y = x @ kernel.reshape(width, width) + bias.reshape(width)
        return y.reshape(batch, tokens, num_heads, -1).transpose(0, 2, 1, 3)

    query, key, value = heads("query"), heads("key"), heads("value")
    scores = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[-1])
    scores = scores + bias
    scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)
    mixed = special.softmax(scores, axis=-1) @ value
    mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
    name = "self_attention_layer/attention_output"
    kernel = weights[f"{name}/kernel"].reshape(width, width)
    return mixed @ kernel + weights[f"{name}/bias"]


def _dense(weights, name, x):
    return x @ weights[f"{name}/kernel"] + weights[f"{name}/bias"]


def _norm(weights, name, x, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt(centered.var(-1, keepdims=True) + epsilon)
    gamma, beta = weights[f"{name}/gamma"], weights[f"{name}/beta"]
    return centered * scale * gamma + beta
