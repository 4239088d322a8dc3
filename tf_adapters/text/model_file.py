"""Stores a text model in a `.keras` file: encoder, packer and all adapters.

Keras saves the active adapter with the encoder's current weights. This module
saves the other adapters and the encoder's original weights.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

import keras
from keras import ops
import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.models import model_config
from tf_adapters.models.adapter_model import AdapterModel

if TYPE_CHECKING:
    import os

    from tf_adapters.text.adapter_set import AdapterSet
    from tf_adapters.text.text_model import TextModel


def check_can_be_saved(
    text_model: TextModel, path: str | os.PathLike[str]
) -> None:
    """Raises a `UserError` if a text model cannot be saved in a file.

    `path` is the path of the file.
    """
    if Path(path).suffix != ".keras":
        raise UserError(
            "A model is saved in a file whose name ends in `.keras`; the "
            "adapter alone in a folder, with `model.save_adapter(folder)`. "
            f"Received: {cut(path)}"
        )
    text_model.adapters.check_enabled("Save the model")
    if "://" in str(path):
        raise UserError(
            "A model is saved in a file on this machine. Copy it afterwards. "
            f"Received: {cut(path)}"
        )
    check_not_folded(text_model)
    text_model.adapter_model.check_encoder()
    text_model.get_config()


def check_not_folded(text_model: TextModel) -> None:
    """Raises a `UserError` if one of a text model's adapters is folded."""
    for adapter in text_model.adapters.models.values():
        adapter.check_not_folded()


def config_of_text_model(text_model: TextModel) -> dict[str, Any]:
    """Returns a text model's configuration as a dict of plain values.

    `text_model_from` creates a text model from the configuration.
    """
    adapters = text_model.adapters
    layer = text_model.preprocessor
    return {
        **model_config.encoder_config(adapters.encoder),
        "adapters": [
            {"name": name, **_plain(model_config.arguments_config(adapter))}
            for name, adapter in adapters.models.items()
        ],
        "active": adapters.active,
        "seed": text_model.seed,
        "learning_rate": text_model.learning_rate,
        "text_fields": _plain(adapters.text_fields),
        "presets": adapters.presets,
        "preprocessor": layer and keras.saving.serialize_keras_object(layer),
    }


def _plain(value: Any) -> Any:
    """Converts tuples in a value to lists, because Keras changes tuples."""
    return json.loads(json.dumps(value))


def text_model_from(cls: type[TextModel], config: dict[str, Any]) -> TextModel:
    """Creates a text model from its configuration, without its weights.

    Args:
        cls: `TextModel`.
        config: Return value of `config_of_text_model`.
    """
    encoder = model_config.encoder_from(config)
    layer = config["preprocessor"]
    first, *others = (
        lambda parts=parts: model_config.model_on(AdapterModel, encoder, parts)
        for parts in config["adapters"]
    )
    model = cls.of_adapter(
        first(),
        preprocessor=layer and keras.saving.deserialize_keras_object(layer),
        seed=config["seed"],
    )
    model.learning_rate = config["learning_rate"]
    # Earlier files do not name presets.
    model.adapters.presets.update(config.get("presets", {}))
    model.compile()
    for parts, make in zip(config["adapters"][1:], others, strict=True):
        with model.adapters.added(parts["name"], make):
            model.compile()
    model.set_active(config["active"])
    fields = config["text_fields"]
    if not isinstance(fields, dict):
        # Earlier files have the fields of the active adapter only.
        fields = {config["active"]: fields}
    for name, names in fields.items():
        model.adapters.text_fields[name] = names and tuple(names)
    return model


def save_weights(text_model: TextModel, store: Any) -> None:
    """Writes the encoder's original weights and the inactive adapters' weights.

    Args:
        text_model: `TextModel`.
        store: Mapping from name to array, which Keras writes to the file.
    """
    adapters = text_model.adapters
    loaded = adapters.encoder.loaded
    for path, value in loaded.values().items():
        store[_key("loaded", path)] = value
    for number, adapter in _inactive(adapters):
        for place, variable in enumerate(_own(adapter)):
            store[_key(number, place)] = ops.convert_to_numpy(variable)
        for path, value in loaded.put_away(adapter.encoder_user).items():
            store[_key(number, path)] = value


def load_weights(text_model: TextModel, store: Any) -> None:
    """Reads the weights that `save_weights` wrote, and assigns them."""
    adapters = text_model.adapters
    loaded = adapters.encoder.loaded
    paths = list(loaded.values())
    loaded.replace({p: np.array(store[_key("loaded", p)]) for p in paths})
    for number, adapter in _inactive(adapters):
        for place, variable in enumerate(_own(adapter)):
            variable.assign(np.array(store[_key(number, place)]))
        names = {path: _key(number, path) for path in paths}
        loaded.keep_for(
            adapter.encoder_user,
            {p: np.array(store[k]) for p, k in names.items() if k in store},
        )


def _inactive(adapters: AdapterSet) -> list[tuple[int, AdapterModel]]:
    return [
        (number, adapter)
        for number, (name, adapter) in enumerate(adapters.models.items())
        if name != adapters.active
    ]


def _own(adapter: AdapterModel) -> list[keras.Variable]:
    """Returns an adapter's own weights, excluding the encoder's weights."""
    shared = {id(v) for v in adapter.encoder.backbone.weights}
    return [v for v in adapter.weights if id(v) not in shared]


def _key(*parts: str | int) -> str:
    # A slash would create a group in the file.
    return "|".join(map(str, parts)).replace("/", "|")
