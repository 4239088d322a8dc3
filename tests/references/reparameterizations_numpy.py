"""Reparameterised weights from the papers, in NumPy. Imports nothing of ours.

Each function comes with one that takes a gradient back through it by hand.
"""

import math

import numpy as np


def lora(kernel, a, b, alpha):
    """Hu et al. 2022, section 4.1, as PyTorch has it: `a` `(r, inputs)`."""
    change = (alpha / len(a)) * (b @ a)
    return kernel + change.T.reshape(kernel.shape)


def lora_gradients(gradient, a, b, alpha):
    """Returns the gradients of `a` and `b` from that of the new kernel."""
    gradient = (alpha / len(a)) * gradient.reshape(a.shape[1], -1).T
    return b.T @ gradient, gradient @ a.T


def mixout(kernel, initial, gates, rate):
    """Lee et al. 2020, written neuron by neuron; `kernel` `(inputs, ...)`."""
    rows = [
        (own if gate else start) / (1 - rate) - rate / (1 - rate) * start
        for own, start, gate in zip(kernel, initial, gates, strict=True)
    ]
    return np.stack(rows)


def mixout_gradient(gradient, gates, rate):
    """Returns the gradient of the kernel: that of what was not replaced."""
    rows = [
        g if gate else 0 * g for g, gate in zip(gradient, gates, strict=True)
    ]
    return np.stack(rows) / (1 - rate)


def gate(log_alpha, noise, low, high):
    """Guo et al. 2021, section 3.1: a gate and its derivative by its logit."""
    s = 1 / (1 + np.exp(-(np.log(noise) - np.log(1 - noise) + log_alpha)))
    stretched = s * (high - low) + low
    inside = (stretched > 0) & (stretched < 1)
    return np.clip(stretched, 0, 1), inside * (high - low) * s * (1 - s)


def difference(theta, w, gates, group_gate):
    """Guo et al. 2021, section 3.2."""
    return theta + group_gate * gates * w


def probability_open(log_alpha, low, high):
    """Guo et al. 2021, section 3.1: that a gate is not zero."""
    return 1 / (1 + np.exp(-(log_alpha - math.log(-low / high))))
