"""Random inputs of attention, and what two functions make of them.

As a program, which needs JAX, it prints the largest differences of outputs, of
gradients, and of outputs in bfloat16 as on a GPU.
"""

import keras
from keras import ops
import numpy as np

from tf_adapters.layers import attention

HEADS = 2


def inputs(dtype="float32"):
    """Returns queries, keys and values of 3 texts, and their padding mask."""
    generator = np.random.default_rng(0)
    vectors = generator.normal(size=(3, 3, 6, 16)).astype("float32")
    mask = np.arange(6) < np.array([[6], [4], [1]])
    return *(ops.convert_to_tensor(x, dtype) for x in vectors), mask


def by_both(query, key, value, mask):
    """Returns the output of the fused function, and that of our own."""
    return (
        attention.fused_attention(query, key, value, HEADS, mask),
        attention.attention(query, key, value, HEADS, mask),
    )


def outputs():
    """Returns the outputs of both functions as arrays."""
    return map(ops.convert_to_numpy, by_both(*inputs()))


def main():
    import jax

    found, expected = outputs()
    *vectors, mask = inputs()
    gradients = [
        jax.grad(
            lambda *x, i=i: ops.sum(ops.sin(by_both(*x, mask)[i])), (0, 1, 2)
        )(*vectors)
        for i in (0, 1)
    ]
    keras.distribution.list_devices = lambda: ["gpu:0"]
    *halves, mask = inputs("bfloat16")
    assert attention.has_fused_kernel(*halves[:2])
    in_half = attention.attention(*halves, HEADS, mask)
    print(
        np.abs(found - expected).max(),
        max(
            float(ops.max(ops.abs(a - b)))
            for a, b in zip(*gradients, strict=True)
        ),
        np.abs(np.asarray(in_half, "float32") - expected).max(),
    )


if __name__ == "__main__":
    main()
