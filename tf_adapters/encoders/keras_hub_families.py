"""KerasHub's backbones that are encoders here, and how each is computed."""

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.encoders.encoder import Encoder

# What KerasHub hard-codes: activation, epsilon, and whether a pooler was
# trained (ELECTRA's has one in KerasHub, but the original never had).
# keras_hub/src/models/{bert,electra,distil_bert,roberta}/*_backbone.py, 0.32.
FAMILIES = {
    keras_hub.models.BertBackbone: ("gelu_tanh", 1e-12, True),
    keras_hub.models.ElectraBackbone: ("gelu_tanh", 1e-12, False),
    keras_hub.models.DistilBertBackbone: ("gelu", 1e-12, False),
    keras_hub.models.RobertaBackbone: ("gelu", 1e-5, False),
    keras_hub.models.XLMRobertaBackbone: ("gelu", 1e-5, False),
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


def fields_of(backbone):
    """Returns what `Encoder` needs besides a backbone.

    Raises:
        UserError: If it is of another family.
    """
    if type(backbone) not in FAMILIES:
        families = ", ".join(known.__name__ for known in FAMILIES)
        raise UserError(
            f"Expected an encoder of one of the kinds {families}. Received: "
            f"{type(backbone).__name__}"
        )
    activation, epsilon, has_pooler = FAMILIES[type(backbone)]
    return {
        "activation": activation,
        "layer_norm_epsilon": epsilon,
        "hidden_dropout": backbone.dropout,
        "attention_dropout": backbone.dropout,
        "has_pooler": has_pooler,
    }
