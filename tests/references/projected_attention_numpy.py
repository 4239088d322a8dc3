"""Projected attention (Stickland and Murray 2019) in NumPy, head by head.

Imports nothing of ours. All arrays are float64.
"""

import math

import numpy as np


def projected_attention(h, mask, weights, num_heads, activation):
    """Returns `f(W_up MHA(W_down h))`, token by token.

    Args:
        h: `(batch, tokens, d)`.
        mask: `(batch, tokens)`, 0 at padding.
        weights: Dict with `down_kernel`, `down_bias`, `up_kernel`, `up_bias`,
            `query_kernel`, `query_bias`, `key_kernel`, `value_kernel` and
            `value_bias`.
        num_heads: Integer.
        activation: Function.
    """
    outputs = np.empty_like(h)
    for n, example in enumerate(h):
        small = example @ weights["down_kernel"] + weights["down_bias"]
        query = small @ weights["query_kernel"] + weights["query_bias"]
        key = small @ weights["key_kernel"]
        value = small @ weights["value_kernel"] + weights["value_bias"]
        kept = np.flatnonzero(mask[n])
        mixed = np.zeros_like(small)
        width = small.shape[1] // num_heads
        for head in range(num_heads):
            part = slice(head * width, (head + 1) * width)
            for t in range(len(example)):
                scores = key[kept][:, part] @ query[t, part] / math.sqrt(width)
                shares = np.exp(scores - scores.max())
                shares /= shares.sum()
                mixed[t, part] = shares @ value[kept][:, part]
        outputs[n] = activation(
            mixed @ weights["up_kernel"] + weights["up_bias"]
        )
    return outputs
