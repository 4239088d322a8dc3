"""The methods' mathematics from the papers, in NumPy. Imports nothing of ours.

All inputs are float64 arrays; `x` is `(tokens, width)`.
"""

import math

import numpy as np

_erf = np.vectorize(math.erf)

ACTIVATIONS = {
    "gelu": lambda x: 0.5 * x * (1 + _erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: (
        0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "relu": lambda x: np.maximum(x, 0),
    "silu": lambda x: x / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "leaky_relu": lambda x: np.where(x > 0, x, 0.01 * x),
    "linear": lambda x: x,
}


def layer_norm(x, gamma, beta, epsilon):
    mean = x.mean(-1, keepdims=True)
    variance = x.var(-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(variance + epsilon) + beta


def bottleneck(x, w_down, b_down, w_up, b_up, activation):
    """Houlsby et al. 2019, section 2.1: the branch without the skip."""
    return ACTIVATIONS[activation](x @ w_down + b_down) @ w_up + b_up


def adapter_bias(u, v, w_alpha, b_alpha):
    """AdapterBias, equation 1: the outer product of alpha and v."""
    alpha = u @ w_alpha + b_alpha
    return np.outer(alpha, v)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def hard_concrete(log_alpha, u, temperature, low, high):
    """Louizos et al. 2018, equations 10 and 11; `u=None` is deterministic."""
    if u is None:
        s = sigmoid(log_alpha)
    else:
        s = sigmoid((np.log(u) - np.log(1 - u) + log_alpha) / temperature)
    return np.clip(s * (high - low) + low, 0, 1)


def expected_open(log_alpha, temperature, low, high):
    """Louizos et al. 2018, equation 12, by counting a fine grid of `u`."""
    u = (np.arange(200_000) + 0.5) / 200_000
    gates = hard_concrete(log_alpha, u, temperature, low, high)
    return (gates > 0).mean()
