"""The layers of a KerasHub block by name.

This is the only file that reads KerasHub's private attributes;
`tests/models/adapted_encoder_test.py` has a canary for each architecture.
"""


def projections(block):
    """Returns a dict from a projection's name to its KerasHub layer."""
    attention = block._self_attention_layer
    return {
        "query": attention._query_dense,
        "key": attention._key_dense,
        "value": attention._value_dense,
        "output": attention._output_dense,
        "ffn_up": block._feedforward_intermediate_dense,
        "ffn_down": block._feedforward_output_dense,
    }


def norms(block):
    """Returns the norms after attention and after the feed-forward network."""
    return block._self_attention_layer_norm, block._feedforward_layer_norm


def num_heads(block):
    """Returns the number of attention heads."""
    return projections(block)["query"].kernel.shape[1]


def kernels(block):
    """Returns each projection's kernel and its number of input axes.

    The result is a dict from a projection's name to its kernel and the number
    of the kernel's leading axes that are inputs.
    """
    return {
        name: (
            layer.kernel,
            # DeBERTa's output kernel has one input axis, others have two.
            len(layer.kernel.shape) - 1 if name == "output" else 1,
        )
        for name, layer in projections(block).items()
    }
