"""A pretrained encoder: a backbone and its checkpoint's settings."""

import dataclasses
import functools

import keras_hub

from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.embedding_precision import embed_in_float32
from tf_adapters.encoders.keras_hub_families import architecture_of
from tf_adapters.encoders.keras_hub_families import fields_of
from tf_adapters.encoders.loaded_weights import LoadedWeights
from tf_adapters.encoders.loaded_weights import hash_of_weights
from tf_adapters.encoders.loaded_weights import loaded_weights


@dataclasses.dataclass(frozen=True)
class Encoder:
    """A pretrained encoder, with its checkpoint's settings.

    Attributes:
        name: Name that the user asked for.
        backbone: KerasHub backbone with the checkpoint's weights. Its own
            `call` uses KerasHub's activation and epsilon; `AdaptedEncoder`
            uses the values below.
        activation: Activation of the feed-forward networks, a name in
            `tf_adapters.layers.activations`.
        layer_norm_epsilon: Epsilon of all layer norms.
        hidden_dropout: Dropout rate of embeddings and sublayers in training.
        attention_dropout: Dropout rate of the attention weights in training.
        has_pooler: Whether the checkpoint has a trained pooler.
        attention_output_dropout: Dropout rate after the output projection of
            attention. `None` (default) for `hidden_dropout`; the original
            DistilBERT has no dropout there.
        ffn_output_dropout: Dropout rate after the feed-forward network. `None`
            (default) for `hidden_dropout`; the original ALBERT has no dropout
            there.

    Examples:
        >>> encoder, tokenizer = tf_adapters.load_encoder("minilm")
        >>> isinstance(encoder, tf_adapters.Encoder)
        True
        >>> encoder.activation
        'gelu'
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

    def __post_init__(self) -> None:
        embed_in_float32(self.backbone)

    @property
    def output_dropouts(self) -> tuple[float, ...]:
        """Dropout rates after attention and after the feed-forward network."""
        rates = self.attention_output_dropout, self.ffn_output_dropout
        return tuple(self.hidden_dropout if r is None else r for r in rates)

    @property
    def architecture(self) -> Architecture:
        """The `Architecture` of the backbone's family."""
        return architecture_of(self.backbone)

    @property
    def takes_segments(self) -> bool:
        """Whether the backbone takes segment ids."""
        inputs = self.backbone.inputs
        return any(tensor.name == "segment_ids" for tensor in inputs)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Hash of everything that determines the loaded encoder's outputs.

        Hexadecimal SHA-256 of the activation, the epsilon, and the names,
        shapes and float32 values of the weights at loading time, before they
        are quantized. Training does not change it.
        """
        return self.loaded.given_fingerprint or hash_of_weights(
            self.backbone, self.settings, self.loaded.values()
        )

    @property
    def loaded(self) -> LoadedWeights:
        """The original values of the backbone's weights, as `LoadedWeights`."""
        return loaded_weights(self.backbone)

    @property
    def quantization(self) -> str | None:
        """`"int8"` or `"int4"` if the weights are quantized, else `None`."""
        return self.loaded.quantization

    @property
    def settings(self) -> tuple[str, float]:
        """The settings that affect the outputs: activation and epsilon."""
        return self.activation, float(self.layer_norm_epsilon)

    def restore(self) -> None:
        """Resets all weights to the values at loading time.

        You can then build a new model on the encoder. A model whose training
        changed the weights can no longer be used: it raises an error.

        Raises:
            UserError: If the encoder comes from a `.keras` file, which does
                not contain the original values.
        """
        self.loaded.restore(self.name)


def as_encoder(backbone: keras_hub.models.Backbone | Encoder) -> Encoder:
    """Returns the `Encoder` of a KerasHub backbone.

    Args:
        backbone: A `keras_hub.models.Backbone` of a known family, with its
            weights. Any other object, such as an `Encoder`, is returned
            unchanged.

    Raises:
        UserError: If the backbone belongs to an unknown family.
    """
    if not isinstance(backbone, keras_hub.models.Backbone):
        return backbone
    fields = fields_of(backbone)
    return Encoder(name=backbone.name, backbone=backbone, **fields)


def encoder_fingerprint(encoder: Encoder) -> str:
    """Returns the fingerprint of an encoder's current weights.

    In contrast, `encoder.fingerprint` is computed from the weights at loading
    time.
    """
    return hash_of_weights(encoder.backbone, encoder.settings, {})


def rounding_advice(encoder: Encoder) -> str:
    """Returns what to do if other weights may be due to rounding, or `""`.

    The sentence follows messages about fingerprints that differ. It is empty if
    the weights are in float32.
    """
    dtype = encoder.backbone.variable_dtype
    if dtype == "float32":
        return ""
    return (
        f" If it is the same one: its weights were rounded to {dtype}. Load it "
        "with the dtype that the adapter was trained with, such as "
        f'dtype="mixed_{dtype}", which keeps weights in float32.'
    )
