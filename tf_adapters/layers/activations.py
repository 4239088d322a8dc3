"""Activations by the names that checkpoints and papers use."""

import math

from keras import ops


def gelu(x):
    """Gaussian error linear unit in its exact form, `x Phi(x)`.

    Written with erf in the order that TensorFlow's graph optimiser knows, which
    then computes it within the matrix product before it; Keras's has erfc.
    """
    return (ops.erf(x * math.sqrt(0.5)) + 1) * 0.5 * x


def gelu_tanh(x):
    """GELU in the tanh form of BERT's and Houlsby's code (`gelu_new`)."""
    return ops.gelu(x, approximate=True)


ACTIVATIONS = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": ops.relu,
    "silu": ops.silu,
    "tanh": ops.tanh,
    "leaky_relu": ops.leaky_relu,
    "linear": lambda x: x,
}


def get_activation(name):
    """Returns the activation called `name`.

    Raises:
        ValueError: If no activation has that name; the message lists all.
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            f"Unknown activation `{name}`. Known activations: "
            f"{', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]
