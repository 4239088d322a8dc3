"""KerasHub's backbones that are encoders here, and how each is computed."""

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.encoders import albert
from tf_adapters.encoders import deberta
from tf_adapters.encoders import mpnet
from tf_adapters.encoders.architecture import Architecture
from tf_adapters.encoders.encoder import Encoder

# What KerasHub hard-codes: activation, epsilon, and whether a pooler was
# trained (ELECTRA's has one in KerasHub, but the original never had).
# keras_hub/src/models/{bert,electra,distil_bert,roberta}/*_backbone.py, 0.32.
# Hugging Face's heads for masked tokens of RoBERTa and ELECTRA have the exact
# GELU, whatever their blocks have.
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
}


def as_encoder(backbone):
    """Returns the `Encoder` of a KerasHub backbone of one's own.

    Args:
        backbone: A `keras_hub.models.Backbone` of a known family, with its
            weights; an `Encoder` is returned as it is.

    Raises:
        UserError: If it is of another family.
    """
    if not isinstance(backbone, keras_hub.models.Backbone):
        return backbone
    fields = fields_of(backbone)
    return Encoder(name=backbone.name, backbone=backbone, **fields)


def architecture_of(backbone):
    """Returns the `Architecture` of a backbone.

    Raises:
        UserError: If it is of another family.
    """
    if type(backbone) not in FAMILIES:
        families = ", ".join(known.__name__ for known in FAMILIES)
        raise UserError(
            f"Expected an encoder of one of the kinds {families}. Received: "
            f"{type(backbone).__name__}"
        )
    return FAMILIES[type(backbone)]


def fields_of(backbone):
    """Returns what `Encoder` needs besides a backbone.

    Raises:
        UserError: If it is of another family.
    """
    architecture = architecture_of(backbone)
    return {
        "activation": architecture.activation,
        "layer_norm_epsilon": architecture.layer_norm_epsilon,
        "hidden_dropout": backbone.dropout,
        "attention_dropout": backbone.dropout,
        "has_pooler": architecture.has_pooler,
    }
