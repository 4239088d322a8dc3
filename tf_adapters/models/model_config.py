"""Converts an `AdapterModel` to plain values for a `.keras` file, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.encoders import quantization
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.loaded_weights import loaded_weights
from tf_adapters.models import composition

if TYPE_CHECKING:
    from tf_adapters.models.adapter_model import AdapterModel


def config_of(model: AdapterModel) -> dict[str, Any]:
    """Returns a dict of plain values that describes a model.

    It holds the constructor's arguments and the left-out blocks.
    """
    return {
        **encoder_config(model.encoder_info),
        **arguments_config(model),
    }


def encoder_config(encoder: Encoder) -> dict[str, Any]:
    """Returns a dict of plain values that describes an `Encoder`.

    It holds the fields, fingerprint and quantization, but no weights.
    """
    fields = dict(vars(encoder))
    fingerprint = fields.pop("fingerprint")
    backbone: Any = keras.saving.serialize_keras_object(fields["backbone"])
    # Leave out the dtype policies of quantized layers: they would make Keras
    # build different variables.
    policy = keras.dtype_policies.serialize(encoder.backbone.dtype_policy)
    backbone["config"]["dtype"] = policy
    return {
        "encoder": {**fields, "backbone": backbone},
        "fingerprint": fingerprint,
        "quantization": encoder.quantization,
    }


def arguments_config(model: AdapterModel) -> dict[str, Any]:
    """Returns the dict of `config_of` without the description of the encoder.

    `model_on` makes a model from this dict and an `Encoder`.
    """
    return {
        "method": methods.to_config(model.method),
        "head": None if model.head is None else heads.to_config(model.head),
        "use_encoder_dropout": model.use_encoder_dropout,
        "seed": model.seed,
        "remat": model.remat,
        "below": model.below and composition.tree_to_config(model.below),
        "left_out": model.left_out,
    }


def model_from(cls: type[AdapterModel], config: dict[str, Any]) -> AdapterModel:
    """Recreates the model that `config_of` described, without its weights."""
    config = dict(config)
    encoder = encoder_from(config)
    for name in ("encoder", "fingerprint", "quantization"):
        config.pop(name, None)
    return model_on(cls, encoder, config)


def encoder_from(config: dict[str, Any]) -> Encoder:
    """Recreates the `Encoder` that `encoder_config` described.

    Its weights are random.
    """
    fields = dict(config["encoder"])
    backbone = keras.saving.deserialize_keras_object(fields["backbone"])
    # Files of version 0.2.0 and earlier have no `quantization`.
    if config.get("quantization"):
        quantization.quantize_backbone(backbone, config["quantization"])
    # The weights are loaded later; until then the encoder is random.
    loaded = loaded_weights(backbone)
    loaded.given_fingerprint, loaded.is_of_file = config["fingerprint"], True
    return Encoder(**{**fields, "backbone": backbone})


def model_on(
    cls: type[AdapterModel], encoder: Encoder, config: dict[str, Any]
) -> AdapterModel:
    """Recreates the model that `arguments_config` described, on an encoder.

    Args:
        cls: `AdapterModel`.
        encoder: `Encoder`.
        config: Return value of `arguments_config`, and options of
            `keras.Model`.
    """
    config = dict(config)
    head = config.pop("head")
    below = config.pop("below", None)
    # Files of version 0.1.0 have no `left_out`.
    left_out = config.pop("left_out", ())
    model = cls(
        encoder=encoder,
        method=methods.from_config(config.pop("method")),
        head=None if head is None else heads.from_config(head),
        below=below and composition.tree_from_config(below),
        **config,
    )
    model.leave_out(left_out)
    return model
