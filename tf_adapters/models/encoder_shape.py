"""What a method has to know of an encoder."""

from tf_adapters.methods.method import EncoderShape


def encoder_shape(encoder):
    """Returns the `EncoderShape` of an `Encoder`."""
    backbone = encoder.backbone
    return EncoderShape(
        num_blocks=backbone.num_layers,
        width=backbone.hidden_dim,
        ffn_width=backbone.intermediate_dim,
        num_heads=backbone.num_heads,
        embedding_width=backbone.token_embedding.embeddings.shape[-1],
    )
