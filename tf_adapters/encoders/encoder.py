"""A pretrained encoder as a value: a backbone and how it is computed."""

import dataclasses
import functools

import keras_hub

from tf_adapters.encoders.loaded_weights import hash_of_weights
from tf_adapters.encoders.loaded_weights import loaded_weights


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
        ffn_output_dropout: Dropout rate after the feed-forward network. `None`
            (default) is `hidden_dropout`; ALBERT's own has none there.
    """

    name: str
    backbone: keras_hub.models.Backbone
    activation: str
    layer_norm_epsilon: float
    hidden_dropout: float
    attention_dropout: float
    has_pooler: bool
    attention_output_dropout: float | None = None
    ffn_output_dropout: float | None = None

    def __post_init__(self):
        for name in ("attention_output_dropout", "ffn_output_dropout"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, self.hidden_dropout)

    @property
    def takes_segments(self):
        """Whether the backbone takes segment ids."""
        inputs = self.backbone.inputs
        return any(tensor.name == "segment_ids" for tensor in inputs)

    @functools.cached_property
    def fingerprint(self):
        """Hash of everything that decides the outputs of the loaded encoder.

        Hexadecimal SHA-256 over the activation, the epsilon, and the names,
        shapes and float32 values of the weights that the encoder was loaded
        with: training does not change it.
        """
        return self.loaded.given_fingerprint or hash_of_weights(
            self.backbone, self.settings, self.loaded.values()
        )

    @property
    def loaded(self):
        """The `LoadedWeights` of the backbone."""
        return loaded_weights(self.backbone)

    @property
    def settings(self):
        """What decides the outputs besides the weights."""
        return self.activation, float(self.layer_norm_epsilon)

    def restore(self):
        """Gives all weights the values that the encoder was loaded with.

        A new model can then be made of it. The model whose training changed
        the weights has lost them: it raises an error when it is used.

        Raises:
            UserError: If the encoder comes from a `.keras` file, which does
                not hold the loaded values.
        """
        self.loaded.restore()


def encoder_fingerprint(encoder):
    """Returns the fingerprint of the weights that an encoder has now.

    `encoder.fingerprint` is of those that it was loaded with.
    """
    return hash_of_weights(encoder.backbone, encoder.settings, {})
