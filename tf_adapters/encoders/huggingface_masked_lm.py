"""The head for masked tokens of a Hugging Face checkpoint."""

import pathlib

import numpy as np

from tf_adapters.common.errors import UserError
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
        Whether the checkpoint is a Hugging Face folder with such a head.

    Raises:
        UserError: If a tensor has another shape than the head needs, or its
            output matrix is not the encoder's token embedding.
    """
    folder = pathlib.Path(load_lib.find_encoder(str(name)))
    if not (folder / "config.json").is_file():
        return False
    if not list(folder.glob("model.safetensors*")):
        return False
    checkpoint = HuggingFaceCheckpoint(folder, "")
    for form in _FORMS:
        if set(form.values()) <= checkpoint.names:
            _check_tied(model.encoder_info, checkpoint)
            _assign(model.head_layer, form, checkpoint)
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


def _assign(layer, form, checkpoint):
    for name, stored in form.items():
        variable = getattr(layer, name)
        tensor = checkpoint.read(stored)
        tensor = tensor.T if name == "kernel" else tensor
        if tensor.shape != tuple(variable.shape):
            raise UserError(
                f"Tensor `{stored}` in `{checkpoint.folder}` has shape "
                f"{tensor.shape}; the encoder's tokens need "
                f"{tuple(variable.shape)}."
            )
        variable.assign(np.ascontiguousarray(tensor))
