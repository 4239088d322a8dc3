"""A name or a folder becomes a pretrained encoder and its tokenizer."""

import dataclasses
import functools
import pathlib

import keras
import keras_hub

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.suggestions import did_you_mean
from tf_adapters.encoders import downloads
from tf_adapters.encoders import fine_tuned
from tf_adapters.encoders import huggingface
from tf_adapters.encoders import huggingface_tokenizer
from tf_adapters.encoders import minilm
from tf_adapters.encoders.encoder import Encoder

# What KerasHub hard-codes: activation, epsilon, and whether a pooler was
# trained (ELECTRA's has one in KerasHub, but the original never had).
# keras_hub/src/models/{bert,electra,distil_bert,roberta}/*_backbone.py, 0.32.
_KERAS_HUB = {
    keras_hub.models.BertBackbone: ("gelu_tanh", 1e-12, True),
    keras_hub.models.ElectraBackbone: ("gelu_tanh", 1e-12, False),
    keras_hub.models.DistilBertBackbone: ("gelu", 1e-12, False),
    keras_hub.models.RobertaBackbone: ("gelu", 1e-5, False),
    keras_hub.models.XLMRobertaBackbone: ("gelu", 1e-5, False),
}


def _presets():
    """Returns KerasHub's presets of the five families, by name."""
    return {
        name: preset
        for backbone in _KERAS_HUB
        for name, preset in backbone.presets.items()
    }


# Names for `--list=encoders`: from name to a line of description.
ENCODERS = {
    "minilm": (
        "6-layer MiniLM (all-MiniLM-L6-v2, BERT, uncased English, 22.7 M "
        "weights). Installed with the requirements; needs no network."
    )
} | {
    name: preset["metadata"]["description"]
    for name, preset in _presets().items()
}


def load_encoder(name, dtype=None, with_tokenizer=True):
    """Loads a pretrained encoder and its tokenizer.

    A Hugging Face folder gives the outputs of the checkpoint's own model in
    PyTorch; a KerasHub preset those of KerasHub's.

    Args:
        name: One of

            - `"minilm"`, installed with the requirements;
            - a KerasHub preset, for example `"bert_base_en_uncased"`;
            - the path of a Hugging Face folder (`config.json`,
              `model.safetensors`, vocabulary), of model_type bert, roberta,
              xlm-roberta, distilbert or electra;
            - the path of a folder that KerasHub's `save_to_preset` wrote;
            - the path of a run that trained an encoder, by method `full` or
              `multitask`, or of that encoder's folder in it;
            - `"hf://owner/model"` or `"kaggle://..."`, as KerasHub takes them.
        dtype: Keras dtype policy of the backbone, for example
            `"mixed_bfloat16"`, or `"mixed_float16"` for GPUs without bfloat16.
            `None` (default) is Keras's own, with weights in float32:
            `"mixed_bfloat16"` where that is `"bfloat16"`. Given as `dtype`,
            `"bfloat16"` halves the weights too, and methods that train some of
            them refuse the encoder. So does `"float16"`.
        with_tokenizer: Whether the tokenizer is loaded too, `True` by default.
            Without, a folder that has no vocabulary serves for work on token
            ids.

    Returns:
        `(Encoder, tokenizer)`. The tokenizer is KerasHub's, or for a folder
        that has only `tokenizer.json` a
        `tf_adapters.encoders.huggingface_tokenizer.HuggingFaceTokenizer`. It
        is `None` where `with_tokenizer` is `False`.

    Raises:
        UserError: If there is no such encoder, if it cannot be downloaded,
            or if its files are incomplete or do not fit together.

    Examples:
        >>> encoder, tokenizer = tf_adapters.load_encoder("minilm")
        >>> packer = tf_adapters.TextPacker(tokenizer, max_length=32)
        >>> model = tf_adapters.adapt(encoder, methods.HeadOnly(), head)
        >>> tuple(model(packer(["a fine film"])).shape)
        (1, 2)
    """
    dtype = _policy(dtype)
    source = find_encoder(str(name))
    trained = fine_tuned.find_fine_tuned(source)
    if trained is not None:
        return _load_trained(str(name), trained, dtype, with_tokenizer)
    if isinstance(source, pathlib.Path) and _is_huggingface(source):
        backbone, fields = huggingface.load_huggingface(source, dtype)
        load_tokenizer = huggingface_tokenizer.load_huggingface_tokenizer
    else:
        load = keras_hub.models.Backbone.from_preset
        backbone = _from_preset(load, str(source), dtype=dtype)
        fields = _keras_hub_fields(backbone)
        load_tokenizer = functools.partial(
            _from_preset, keras_hub.models.Tokenizer.from_preset
        )
    encoder = Encoder(name=str(name), backbone=backbone, **fields)
    if not with_tokenizer:
        return encoder, None
    return encoder, load_tokenizer(source)


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
    fields = _keras_hub_fields(backbone)
    return Encoder(name=backbone.name, backbone=backbone, **fields)


def find_encoder(name):
    """Returns the folder, preset or handle that a name stands for.

    Args:
        name: As for `load_encoder`.

    Raises:
        UserError: If there is no such encoder, or it cannot be downloaded.
    """
    if name == "minilm":
        return minilm.minilm_folder()
    if pathlib.Path(name).is_dir():
        return pathlib.Path(name)
    if name.startswith("hf://"):
        return downloads.huggingface_folder(name)
    presets = _presets()
    handle = presets[name]["kaggle_handle"] if name in presets else name
    if handle.startswith("kaggle://"):
        downloads.check_preset(name, handle)
        return name
    if "/" in name or "\\" in name:
        raise UserError(
            f"There is no folder `{cut(name)}`. Expected: a folder that holds "
            "an encoder, `hf://owner/model`, or a name that "
            "`tf-adapters --list=encoders` prints."
        )
    raise UserError(
        f"Unknown encoder `{cut(name)}`.{did_you_mean(name, ENCODERS)} "
        "Expected: `minilm`, a KerasHub preset (`tf-adapters --list=encoders` "
        "prints them), the path of a folder, or `hf://owner/model`."
    )


def _policy(dtype):
    """Returns the policy to load with: `None` stays the default."""
    if dtype is None:
        name = keras.config.dtype_policy().name
        return f"mixed_{name}" if name in ("bfloat16", "float16") else None
    try:
        return keras.dtype_policies.get(dtype)
    except (TypeError, ValueError) as error:
        raise UserError(
            '`dtype` is a Keras dtype policy: None, "float32", '
            f'"mixed_bfloat16" or "mixed_float16". Received: {dtype!r:.100}'
        ) from error


def _load_trained(name, folder, dtype, with_tokenizer):
    """Loads the encoder that training started from, and its new weights."""
    config = fine_tuned.read_fine_tuned_config(folder)
    base, tokenizer = load_encoder(
        config["encoder"]["name"], dtype, with_tokenizer
    )
    fingerprint = base.fingerprint
    if fingerprint != config["encoder"]["fingerprint"]:
        raise AdapterError(
            f"The encoder in {folder} was trained from `{base.name}` with "
            f"fingerprint {config['encoder']['fingerprint'][:12]}, but "
            f"`{base.name}` now has {fingerprint[:12]}. Put that encoder back, "
            "or train again."
        )
    fine_tuned.load_fine_tuned_weights(base.backbone, folder, config)
    return dataclasses.replace(base, name=name), tokenizer


def _is_huggingface(folder):
    config = huggingface.read_json(folder / "config.json")
    if "registered_name" not in config and "model_type" not in config:
        raise UserError(
            f"`{folder}/config.json` describes no encoder. Expected: "
            "model_type (a Hugging Face folder) or registered_name (a folder "
            f"that KerasHub wrote). Received: the keys {cut(sorted(config))}"
        )
    return "model_type" in config


def _from_preset(load, name, **options):
    """Returns what a `from_preset` of KerasHub's loads, or says what fails."""
    try:
        return load(str(name), **options)
    except (KeyError, OSError, ValueError) as error:
        raise UserError(
            f"KerasHub could not load the encoder `{cut(name)}`: {cut(error)} "
            "Expected: a preset with weights and a tokenizer, as "
            "`backbone.save_to_preset` and `tokenizer.save_to_preset` write "
            "them into one folder."
        ) from error


def _keras_hub_fields(backbone):
    if type(backbone) not in _KERAS_HUB:
        families = ", ".join(known.__name__ for known in _KERAS_HUB)
        raise UserError(
            f"Expected an encoder of one of the kinds {families}. Received: "
            f"{type(backbone).__name__}"
        )
    activation, epsilon, has_pooler = _KERAS_HUB[type(backbone)]
    return {
        "activation": activation,
        "layer_norm_epsilon": epsilon,
        "hidden_dropout": backbone.dropout,
        "attention_dropout": backbone.dropout,
        "has_pooler": has_pooler,
    }
