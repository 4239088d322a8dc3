"""AdapterFusion with the paper's formula in NumPy, with all outputs."""

import numpy as np

from tests.references.methods_numpy import bottleneck


def fusion(x, adapters, activation, query, query_bias, key, value):
    """Pfeiffer et al. 2021, section 3.2.

    Args:
        x: `(tokens, width)`.
        adapters: List of `(w_down, b_down, w_up, b_up)`.
        query, key, value: `(width, width)`, applied from the right.

    Returns:
        The fused output `(tokens, width)` and the weights `(tokens, adapters)`.
    """
    z = np.stack([bottleneck(x, *a, activation) for a in adapters], axis=1)
    q = x @ query + query_bias
    logits = np.einsum("td,tnd->tn", q, z @ key)
    exponentials = np.exp(logits - logits.max(-1, keepdims=True))
    p = exponentials / exponentials.sum(-1, keepdims=True)
    return np.einsum("tn,tnd->td", p, z @ value), p
