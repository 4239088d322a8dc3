"""Lets embeddings of an encoder in mixed precision compute in float32."""

import keras
import keras_hub


def embed_in_float32(backbone: keras_hub.models.Backbone) -> None:
    """Makes the embeddings of a backbone in mixed precision return float32.

    The gradient of a vector is a sum over all tokens that look it up. JAX adds
    in the type of the vectors: in bfloat16, a sum of 4,096 ones is 256, because
    larger sums no longer change. The layers after the embeddings still compute
    in half precision.

    Args:
        backbone: Backbone of any dtype policy. Its layers are changed if the
            policy is mixed and the weights are not quantized.
    """
    for layer in backbone._flatten_layers():
        is_table = isinstance(
            layer,
            keras.layers.Embedding | keras_hub.layers.PositionEmbedding,
        )
        policy = layer.dtype_policy
        if is_table and policy.name.startswith("mixed_"):
            layer.dtype_policy = keras.DTypePolicy("float32")
