"""The head for masked tokens of a checkpoint, Hugging Face's or a preset."""

import pathlib

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.encoders import keras_hub_masked_lm
from tf_adapters.encoders import load as load_lib
from tf_adapters.encoders.huggingface_weights import HuggingFaceCheckpoint

# From our variable to the tensor's name, for each form of the head.
_FORMS = (
    {  # BERT
        "kernel": "cls.predictions.transform.dense.weight",
        "bias": "cls.predictions.transform.dense.bias",
        "gamma": "cls.predictions.transform.LayerNorm.weight",
        "beta": "cls.predictions.transform.LayerNorm.bias",
        "output_bias": "cls.predictions.bias",
    },
    {  # RoBERTa and XLM-R
        "kernel": "lm_head.dense.weight",
        "bias": "lm_head.dense.bias",
        "gamma": "lm_head.layer_norm.weight",
        "beta": "lm_head.layer_norm.bias",
        "output_bias": "lm_head.bias",
    },
    {  # DistilBERT
        "kernel": "vocab_transform.weight",
        "bias": "vocab_transform.bias",
        "gamma": "vocab_layer_norm.weight",
        "beta": "vocab_layer_norm.bias",
        "output_bias": "vocab_projector.bias",
    },
    {  # ELECTRA's generator
        "kernel": "generator_predictions.dense.weight",
        "bias": "generator_predictions.dense.bias",
        "gamma": "generator_predictions.LayerNorm.weight",
        "beta": "generator_predictions.LayerNorm.bias",
        "output_bias": "generator_lm_head.bias",
    },
)
# The last matrix of each form, where a checkpoint stores it.
_OUTPUTS = (
    "cls.predictions.decoder.weight",
    "lm_head.decoder.weight",
    "vocab_projector.weight",
    "generator_lm_head.weight",
)


def load_masked_lm_head(model, name):
    """Assigns a checkpoint's own head for masked tokens to a model's.

    Args:
        model: `AdapterModel` with the head `MaskedLM`.
        name: What `load_encoder` was given.

    Returns:
        Whether the checkpoint has such a head.

    Raises:
        UserError: If a tensor has another shape than the head needs, or its
            output matrix is not the encoder's token embedding.
    """
    source = load_lib.find_encoder(str(name))
    if not list(pathlib.Path(source).glob("model.safetensors*")):
        arrays = keras_hub_masked_lm.read_preset_head(source)
        for name, array in (arrays or {}).items():
            _assign(model.head_layer, name, array, f"The preset `{source}`")
        return arrays is not None
    checkpoint = HuggingFaceCheckpoint(source, "")
    for form in _FORMS:
        if set(form.values()) <= checkpoint.names:
            _check_tied(model.encoder_info, checkpoint)
            for name, stored in form.items():
                array = checkpoint.read(stored)
                array = array.T if name == "kernel" else array
                where = f"Tensor `{stored}` in `{checkpoint.folder}`"
                _assign(model.head_layer, name, array, where)
            return True
    return False


def _check_tied(encoder, checkpoint):
    """Refuses a head whose last matrix is not the embedding, as ours is."""
    embeddings = encoder.backbone.token_embedding.embeddings
    for name in checkpoint.names.intersection(_OUTPUTS):
        if not np.array_equal(checkpoint.read(name), embeddings):
            raise UserError(
                f"`{name}` in `{checkpoint.folder}` is not the encoder's token "
                "embedding: heads for masked tokens with an output matrix of "
                "their own are not supported. Remove the head's tensors from "
                "the checkpoint to train a new one."
            )


def _assign(layer, name, array, where):
    variable = getattr(layer, name)
    if array.shape != tuple(variable.shape):
        raise UserError(
            f"{where} has shape {array.shape} for the head's `{name}`; the "
            f"encoder's tokens need {tuple(variable.shape)}."
        )
    variable.assign(np.ascontiguousarray(array))
