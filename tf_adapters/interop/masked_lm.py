"""Converts AdapterHub's masked language modeling head to ours and back.

The head's last matrix is the encoder's token embedding. AdapterHub stores a
copy with each head; our head uses the encoder's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.interop.adapterhub import keys
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.interop.tensor_names import linear
from tf_adapters.layers.quantized import embeddings_of

if TYPE_CHECKING:
    from tf_adapters.encoders.encoder import Encoder

NAME = "masked_lm"
TABLE = "head/token_embeddings"
# Settings of AdapterHub's default head; our head supports no others.
_PLAIN = {"layers": 2, "layer_norm": True, "bias": True, "shift_labels": False}


def read_head(
    inner: dict[str, Any], start: str
) -> tuple[dict[str, Any], list[TensorName]]:
    """Returns the configuration and the `TensorName`s of our equivalent head.

    The configuration lacks `layer_norm_epsilon`, which `tied` adds.

    Args:
        inner: Value of `config` in AdapterHub's `head_config.json`.
        start: Prefix of AdapterHub's tensor names.

    Raises:
        AdapterError: If tf_adapters has no such head.
    """
    activation = str(inner["activation_function"]).lower()
    given = {key: inner.get(key, value) for key, value in _PLAIN.items()}
    if given != _PLAIN or activation not in keys.ACTIVATIONS:
        raise AdapterError(
            f"tf_adapters has no head `{NAME}` of AdapterHub with {given}, "
            f"`activation_function: {cut(activation)}`. Load the adapter "
            "without its head: with_head=False."
        )
    config = {
        "name": NAME,
        "vocabulary_size": inner["vocab_size"],
        "embedding_width": inner["embedding_size"],
        "activation": keys.ACTIVATIONS[activation],
    }
    return config, _tensor_names(start)


def _tensor_names(start: str) -> list[TensorName]:
    return [
        *linear("head/", f"{start}0"),
        TensorName("head/gamma", (f"{start}2.weight",)),
        TensorName("head/beta", (f"{start}2.bias",)),
        TensorName(TABLE, (f"{start}3.weight",)),
        TensorName("head/output_bias", (f"{start}3.bias",)),
    ]


def tied(
    config: dict[str, Any] | None,
    tensors: dict[str, np.ndarray],
    encoder: Encoder,
) -> tuple[dict[str, Any] | None, dict[str, np.ndarray]]:
    """Ties a masked language modeling head to the encoder's token embedding.

    AdapterHub stores the embedding as the head's last matrix. It is removed
    from the tensors, because our head uses the encoder's embedding. The
    encoder's `layer_norm_epsilon` is added to the configuration. If the head is
    of another kind, config and tensors are returned unchanged.

    Args:
        config: Our head's configuration, or `None`.
        tensors: Dict from our names to arrays.
        encoder: `Encoder`.

    Raises:
        UserError: If the head's last matrix differs from the token embedding.
    """
    if config is None or config["name"] != NAME:
        return config, tensors
    tensors = dict(tensors)
    table, own = tensors.pop(TABLE), table_of(encoder)
    sizes = (config["vocabulary_size"], config["embedding_width"])
    if sizes != own.shape or not np.array_equal(table, own):
        raise UserError(
            "The last matrix of its head for masked tokens is not the token "
            f"embedding of `{encoder.name}`, as tf_adapters requires. Load the "
            "adapter without its head: with_head=False."
        )
    epsilon = encoder.layer_norm_epsilon
    return {**config, "layer_norm_epsilon": epsilon}, tensors


def untied(
    config: dict[str, Any], tensors: dict[str, np.ndarray], encoder: Encoder
) -> dict[str, np.ndarray]:
    """Adds the encoder's token embedding to a masked language modeling head.

    AdapterHub stores a copy of the embedding with each such head. Returns a new
    dict of tensors.

    Raises:
        AdapterError: If the epsilon of the head's norm differs from the
            encoder's epsilon, which AdapterHub's head always uses.
    """
    own, epsilon = config["layer_norm_epsilon"], encoder.layer_norm_epsilon
    if own != epsilon:
        raise AdapterError(
            "In AdapterHub a head for masked tokens has its encoder's "
            f"epsilon, {epsilon:g}, but this one has {own:g}. Make the head "
            f"with layer_norm_epsilon={epsilon:g}, or export it with "
            "with_head=False."
        )
    return {**tensors, TABLE: table_of(encoder)}


def write_head(
    config: dict[str, Any], start: str
) -> tuple[dict[str, Any], list[TensorName]]:
    """Converts a masked language modeling head to AdapterHub's format.

    Args:
        config: Our head's configuration.
        start: Prefix of AdapterHub's tensor names.

    Returns:
        A tuple of two: the value of `config` in `head_config.json`, and the
        head's `TensorName`s.
    """
    inner = {
        **_PLAIN,
        "activation_function": keys.NON_LINEARITIES[config["activation"]],
        "embedding_size": config["embedding_width"],
        "head_type": NAME,
        "label2id": None,
        "vocab_size": config["vocabulary_size"],
    }
    return inner, _tensor_names(start)


def table_of(encoder: Encoder) -> np.ndarray:
    """Returns an encoder's token embedding as a float32 array."""
    table = embeddings_of(encoder.backbone.token_embedding)
    return np.asarray(table, "float32")
