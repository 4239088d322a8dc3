"""Loads a checkpoint's masked language modeling head."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.encoders import keras_hub_masked_lm
from tf_adapters.encoders import load as load_lib
from tf_adapters.encoders.huggingface_checkpoint import HuggingFaceCheckpoint
from tf_adapters.encoders.huggingface_weights import OUTPUTS

if TYPE_CHECKING:
    import os

    import keras

    from tf_adapters.encoders.encoder import Encoder


# Checkpoint names of the dense layer, the norm and the output bias of each kind
# of head.
_FORMS: tuple[tuple[Any, ...], ...] = (
    (  # BERT
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
    # RoBERTa and XLM-R
    ("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
    # DistilBERT
    ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
    (  # ELECTRA's generator
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head.bias",
    ),
    (  # ALBERT
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.bias",
    ),
    (  # DeBERTa-v3; in transformers, with `legacy=False`
        "lm_predictions.lm_head.dense",
        "lm_predictions.lm_head.LayerNorm",
        "lm_predictions.lm_head.bias",
    ),
    # ModernBERT, whose dense layer and norm have no biases; ours stay zero
    ("head.dense", "head.norm", "decoder.bias", False),
)


def load_masked_lm_head(model: Any, name: str | os.PathLike[str]) -> bool:
    """Copies a checkpoint's masked language modeling head into a model.

    Args:
        model: `AdapterModel` with the head `MaskedLM`.
        name: The encoder's name, as for `load_encoder`.

    Returns:
        Whether the checkpoint has such a head.

    Raises:
        UserError: If a tensor has the wrong shape, or the checkpoint's output
            matrix differs from the encoder's token embedding.
    """
    source = load_lib.find_encoder(str(name))
    if not list(pathlib.Path(source).glob("model.safetensors*")):
        arrays = keras_hub_masked_lm.read_preset_head(source)
        for name, array in (arrays or {}).items():
            _assign(model.head_layer, name, array, f"The preset `{source}`")
        return arrays is not None
    checkpoint = HuggingFaceCheckpoint(source, "")
    for form in _FORMS:
        names = _tensor_names(*form)
        if set(names.values()) <= checkpoint.names:
            _check_tied(model.encoder_info, checkpoint)
            for name, stored in names.items():
                array = checkpoint.read(stored)
                array = array.T if name == "kernel" else array
                where = f"Tensor `{stored}` in `{checkpoint.folder}`"
                _assign(model.head_layer, name, array, where)
            return True
    return False


def _tensor_names(
    layer: str, norm: str, output_bias: str, has_offsets: bool = True
) -> dict[str, str]:
    """Returns a dict from the names of a head's variables to tensor names.

    The tensor names are names in the checkpoint. The arguments are an entry of
    `_FORMS`; `has_offsets` says whether the dense layer and the norm have
    biases.
    """
    names = {
        "kernel": f"{layer}.weight",
        "gamma": f"{norm}.weight",
        "output_bias": output_bias,
    }
    if has_offsets:
        names |= {"bias": f"{layer}.bias", "beta": f"{norm}.bias"}
    return names


def _check_tied(encoder: Encoder, checkpoint: HuggingFaceCheckpoint) -> None:
    """Raises a `UserError` if the output matrix is not the token embedding."""
    if encoder.quantization:
        return  # The embeddings are rounded, so they cannot be compared.
    embeddings = encoder.backbone.token_embedding.embeddings.numpy()
    for name in checkpoint.names.intersection(OUTPUTS):
        # The embeddings are rounded if they are bfloat16, for example.
        output = checkpoint.read(name).astype(embeddings.dtype)
        if not np.array_equal(output, embeddings):
            raise UserError(
                f"`{name}` in `{checkpoint.folder}` is not the encoder's token "
                "embedding: heads for masked tokens with an output matrix of "
                "their own are not supported. Remove the head's tensors from "
                "the checkpoint to train a new one."
            )


def _assign(
    layer: keras.layers.Layer, name: str, array: np.ndarray, where: str
) -> None:
    variable = getattr(layer, name)
    if array.shape != tuple(variable.shape):
        raise UserError(
            f"{where} has shape {array.shape} for the head's `{name}`; the "
            f"encoder's tokens need {tuple(variable.shape)}."
        )
    variable.assign(np.ascontiguousarray(array))
