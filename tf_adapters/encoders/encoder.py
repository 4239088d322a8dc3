"""A pretrained encoder as a value: a backbone and how it is computed."""

import dataclasses
import hashlib

import keras_hub
import numpy as np


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A pretrained encoder and what its checkpoint says about computing it.

    Attributes:
        name: What the user asked for.
        backbone: KerasHub backbone with the checkpoint's weights. Its own
            `call` uses KerasHub's activation and epsilon; `AdaptedEncoder`
            uses those below.
        activation: Activation of the feed-forward networks; a name in
            `tf_adapters.layers.activations`.
        layer_norm_epsilon: Epsilon of all layer norms.
        hidden_dropout: Dropout rate of embeddings and sublayers in training.
        attention_dropout: Dropout rate of the attention weights in training.
        has_pooler: Whether the checkpoint has a trained pooler.
        attention_output_dropout: Dropout rate after the attention's output
            projection. `None` (default) is `hidden_dropout`; DistilBERT's
            own has none there.
    """

    name: str
    backbone: keras_hub.models.Backbone
    activation: str
    layer_norm_epsilon: float
    hidden_dropout: float
    attention_dropout: float
    has_pooler: bool
    attention_output_dropout: float | None = None

    def __post_init__(self):
        if self.attention_output_dropout is None:
            object.__setattr__(
                self, "attention_output_dropout", self.hidden_dropout
            )

    @property
    def takes_segments(self):
        """Whether the backbone takes segment ids."""
        inputs = self.backbone.inputs
        return any(tensor.name == "segment_ids" for tensor in inputs)


def encoder_fingerprint(encoder):
    """Returns a hash of everything that decides an encoder's outputs.

    Call it before training changes the weights.

    Args:
        encoder: `Encoder`.

    Returns:
        Hexadecimal SHA-256 over the names, shapes and values of the weights,
        the activation and the epsilon. The values are hashed as float32, so a
        `mixed_bfloat16` policy, whose variables are float32, changes nothing.
    """
    digest = hashlib.sha256()
    settings = (encoder.activation, float(encoder.layer_norm_epsilon))
    digest.update(repr(settings).encode())
    weights = {weight.path: weight for weight in encoder.backbone.weights}
    for path in sorted(weights):
        value = np.ascontiguousarray(weights[path].numpy(), dtype="<f4")
        digest.update(f"{path} {value.shape}".encode())
        digest.update(value)
    return digest.hexdigest()
