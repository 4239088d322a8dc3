"""An `AdapterModel` as the plain values of a `.keras` file, and back."""

import keras

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.loaded_weights import loaded_weights
from tf_adapters.models import composition


def config_of(model):
    """Returns what a model's constructor needs, and what it is after that."""
    encoder = dict(vars(model.encoder_info))
    fingerprint = encoder.pop("fingerprint")
    backbone = keras.saving.serialize_keras_object(encoder["backbone"])
    return {
        "encoder": {**encoder, "backbone": backbone},
        "method": methods.to_config(model.method),
        "head": None if model.head is None else heads.to_config(model.head),
        "use_encoder_dropout": model.use_encoder_dropout,
        "seed": model.seed,
        "remat": model.remat,
        "below": model.below and composition.tree_to_config(model.below),
        "left_out": model.left_out,
        "fingerprint": fingerprint,
    }


def model_from(cls, config):
    """Returns a model of a class, without its weights, of `config_of`."""
    config = dict(config)
    fields = dict(config.pop("encoder"))
    backbone = keras.saving.deserialize_keras_object(fields["backbone"])
    head = config.pop("head")
    below = config.pop("below", None)
    # The weights come later; until then the encoder is a random one.
    loaded_weights(backbone).given_fingerprint = config.pop("fingerprint")
    # Files of version 0.1.0 know no blocks that were left out.
    left_out = config.pop("left_out", ())
    model = cls(
        encoder=Encoder(**{**fields, "backbone": backbone}),
        method=methods.from_config(config.pop("method")),
        head=None if head is None else heads.from_config(head),
        below=below and composition.tree_from_config(below),
        **config,
    )
    model.leave_out(left_out)
    return model
