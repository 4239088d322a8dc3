"""ModernBERT with slots in its blocks, in NumPy. Imports nothing of ours.

Warner et al. 2024, arXiv:2412.13663. Rotary positions are products of complex
numbers, as in Su et al. 2021, arXiv:2104.09864. Weights come as a dict from
the backbone's variable paths.
"""

import math

import numpy as np
from scipy import special


def encode(weights, features, settings, slot=None):
    """Computes the encoder in float64.

    Args:
        weights: Dict from variable path to array.
        features: Dict of `token_ids` and `padding_mask`, `(batch, tokens)`.
        settings: The backbone's `get_config()`.
        slot: Function of the block's number, the name of the sublayer, its
            output, what was before it in the residual stream, and the gated
            activation; returns the new output. `None` (default) changes none.

    Returns:
        `(batch, tokens, width)` after the final norm.
    """
    weights = {k: np.float64(v) for k, v in weights.items()}
    x = weights["token_embedding/embeddings"][features["token_ids"]]
    x = _norm(weights, "embeddings_layer_norm", x)
    slot = slot or (lambda number, name, y, h, inner: y)
    for i in range(settings["num_layers"]):
        start = f"transformer_layer_{i}/"
        block = {
            k.removeprefix(start): v
            for k, v in weights.items()
            if k.startswith(start)
        }
        read = _norm(block, "attention_norm", x) if i else x
        y = _attention(block, read, features["padding_mask"], i, settings)
        x = x + slot(i, "attention", y, x, None)
        read = _norm(block, "feedforward_norm", x)
        wide = read @ block["feedforward_intermediate_dense/kernel"]
        first, second = np.split(wide, 2, axis=-1)
        inner = first * special.ndtr(first) * second
        y = inner @ block["feedforward_output_dense/kernel"]
        x = x + slot(i, "ffn", y, x, inner)
    return _norm(weights, "final_norm", x)


def _attention(block, x, mask, number, settings):
    batch, tokens, width = x.shape
    heads = settings["num_heads"]
    is_global = number % settings["global_every"] == 0
    theta = settings["global_theta" if is_global else "local_theta"]
    query, key, value = (
        (x @ block[f"{name}/kernel"])
        .reshape(batch, tokens, heads, -1)
        .transpose(0, 2, 1, 3)
        for name in ("query", "key", "value")
    )
    scores = _rotated(query, theta) @ _rotated(key, theta).conj().swapaxes(2, 3)
    scores = scores.real / math.sqrt(query.shape[-1])
    distance = np.abs(np.arange(tokens)[:, None] - np.arange(tokens))
    sees = np.broadcast_to(mask[:, None, None] == 1, scores.shape)
    if not is_global:
        sees = sees & (distance <= settings["local_attention"] // 2)
    scores = np.where(sees, scores, -1e30)
    mixed = special.softmax(scores, axis=-1) @ value
    mixed = mixed.transpose(0, 2, 1, 3).reshape(x.shape)
    return mixed @ block["attention_output/kernel"]


def _rotated(x, theta):
    """Returns complex vectors of half the width."""
    half = x.shape[-1] // 2
    angles = np.arange(x.shape[2])[:, None] * theta ** (-np.arange(half) / half)
    return (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)


def _norm(weights, name, x):
    centered = x - x.mean(-1, keepdims=True)
    scale = 1 / np.sqrt(centered.var(-1, keepdims=True) + 1e-5)
    return centered * scale * weights[f"{name}/gamma"]
