"""The known families of backbones, and how each is computed."""

from typing import Any

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.encoders import albert
from tf_adapters.encoders import deberta
from tf_adapters.encoders import modernbert
from tf_adapters.encoders import mpnet
from tf_adapters.encoders.architecture import Architecture

# Values that KerasHub hard-codes: activation, epsilon, and whether a pooler was
# trained (KerasHub's ELECTRA has a pooler, but the original does not).
# keras_hub/src/models/{bert,electra,distil_bert,roberta}/*_backbone.py, 0.32.
# Hugging Face's masked language modeling heads of RoBERTa and ELECTRA use the
# exact GELU, independent of the blocks' activation.
_ROBERTA = Architecture(
    "gelu", 1e-5, masked_lm_activation="gelu", counts_positions=True
)
FAMILIES = {
    keras_hub.models.BertBackbone: Architecture(
        "gelu_tanh", 1e-12, has_pooler=True
    ),
    keras_hub.models.ElectraBackbone: Architecture(
        "gelu_tanh", 1e-12, masked_lm_activation="gelu"
    ),
    keras_hub.models.DistilBertBackbone: Architecture("gelu", 1e-12),
    keras_hub.models.RobertaBackbone: _ROBERTA,
    keras_hub.models.XLMRobertaBackbone: _ROBERTA,
    mpnet.MPNetBackbone: mpnet.ARCHITECTURE,
    albert.AlbertBackbone: albert.ARCHITECTURE,
    deberta.DebertaV3Backbone: deberta.ARCHITECTURE,
    modernbert.ModernBertBackbone: modernbert.ARCHITECTURE,
}


def register(
    backbone: type[keras_hub.models.Backbone], architecture: Architecture
) -> None:
    """Registers a class of backbones, so that all methods support it.

    Args:
        backbone: Subclass of `keras_hub.models.Backbone`. Its instances have
            the attributes `num_layers`, `num_heads`, `hidden_dim`,
            `intermediate_dim`, `dropout` and `token_embedding`, and, if the
            number of tokens is limited, `max_sequence_length`. Their inputs are
            `token_ids`, `padding_mask` and, optionally, `segment_ids`.
        architecture: The `Architecture` of the class.

    Raises:
        UserError: If an argument has the wrong type, or if the class is already
            registered with another architecture.

    Examples:
        >>> import keras_hub
        >>> from tf_adapters import encoders
        >>> class MyBackbone(keras_hub.models.BertBackbone):
        ...     pass
        >>> encoders.register(MyBackbone, encoders.Architecture("relu", 1e-12))
    """
    base = keras_hub.models.Backbone
    if not (isinstance(backbone, type) and issubclass(backbone, base)):
        raise UserError(
            "An encoder's class inherits from `keras_hub.models.Backbone`. "
            f"Received: {backbone!r:.100}"
        )
    if not isinstance(architecture, Architecture):
        raise UserError(
            "`architecture` is an `Architecture`, which says how the backbone "
            f"is computed. Received: {architecture!r:.100}"
        )
    if FAMILIES.setdefault(backbone, architecture) != architecture:
        raise UserError(
            f"{backbone.__name__} is known with another architecture. Register "
            "a subclass of it."
        )


def architecture_of(backbone: keras_hub.models.Backbone) -> Architecture:
    """Returns the `Architecture` of a backbone.

    Raises:
        UserError: If the backbone belongs to an unknown family.
    """
    if type(backbone) not in FAMILIES:
        families = ", ".join(known.__name__ for known in FAMILIES)
        raise UserError(
            f"Expected an encoder of one of the kinds {families}. Received: "
            f"{type(backbone).__name__}. `tf_adapters.encoders.register` makes "
            "another kind known."
        )
    return FAMILIES[type(backbone)]


def fields_of(backbone: keras_hub.models.Backbone) -> dict[str, Any]:
    """Returns the arguments of `Encoder` for a backbone of KerasHub, as a dict.

    The name and the backbone itself are not included.

    Raises:
        UserError: If the backbone belongs to an unknown family.
    """
    architecture = architecture_of(backbone)
    return {
        "activation": architecture.activation,
        "layer_norm_epsilon": architecture.layer_norm_epsilon,
        "hidden_dropout": backbone.dropout,
        "attention_dropout": backbone.dropout,
        "has_pooler": architecture.has_pooler,
    }
