"""Loads a pretrained encoder and its tokenizer by name or folder."""

from collections.abc import Callable
import dataclasses
import os
import pathlib
from typing import Any

import keras
import keras_hub

from tf_adapters.common.checks import did_you_mean
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.extras import has_tensorflow_text
from tf_adapters.encoders import config_checks
from tf_adapters.encoders import downloads
from tf_adapters.encoders import fine_tuned
from tf_adapters.encoders import huggingface
from tf_adapters.encoders import huggingface_tokenizer
from tf_adapters.encoders import minilm
from tf_adapters.encoders import preset_checks
from tf_adapters.encoders import quantization
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.encoder import rounding_advice
from tf_adapters.encoders.keras_hub_families import FAMILIES
from tf_adapters.encoders.keras_hub_families import fields_of


def _presets() -> dict[str, dict[str, Any]]:
    """Returns a dict from the names of KerasHub's presets to descriptions.

    Only presets of the families that this library supports are included.
    """
    return {
        name: preset
        for backbone in FAMILIES
        for name, preset in backbone.presets.items()
    }


# Names for `--list=encoders`, with a one-line description.
ENCODERS = {
    "minilm": (
        "6-layer MiniLM (all-MiniLM-L6-v2, BERT, uncased English, 22.7 M "
        "weights). Installed with the requirements; needs no network."
    )
} | {
    name: preset["metadata"]["description"]
    for name, preset in _presets().items()
}


def load_encoder(
    name: str | os.PathLike[str],
    dtype: keras.DTypePolicy | str | None = None,
    with_tokenizer: bool = True,
    quantize: str | None = None,
) -> tuple[Encoder, Any]:
    """Loads a pretrained encoder and its tokenizer.

    With a Hugging Face folder, the outputs equal those of the checkpoint's
    PyTorch model; with a KerasHub preset, those of the KerasHub model.

    Args:
        name: One of

            - `"minilm"`, installed with the requirements;
            - a KerasHub preset, for example `"bert_base_en_uncased"`;
            - the path of a Hugging Face folder (`config.json`,
              `model.safetensors`, vocabulary), of model_type bert, roberta,
              xlm-roberta, distilbert, electra, mpnet,
              albert, deberta-v2 (DeBERTa-v3) or modernbert;
            - the path of a folder that KerasHub's `save_to_preset` wrote;
            - the path of a run that trained an encoder, with method `full` or
              `multitask`, or of the encoder's folder in it;
            - `"hf://owner/model"` or `"kaggle://..."`, as in KerasHub.
        dtype: Keras dtype policy of the backbone, for example
            `"mixed_bfloat16"`, or `"mixed_float16"` for GPUs without bfloat16.
            `None` (default) uses Keras's global policy, but keeps weights in
            float32: a global `"bfloat16"` becomes `"mixed_bfloat16"`. An
            explicit `"bfloat16"` or `"float16"` also halves the size of the
            weights, but methods that train some of them then raise an error,
            and runs that were trained with float32 weights do not load.
        with_tokenizer: Whether to load the tokenizer, too. Defaults to `True`.
            If `False`, the folder needs no vocabulary; use this if your inputs
            are token ids.
        quantize: `"int8"` or `"int4"`: stores kernels and embeddings in 8 or 4
            bits, so the encoder takes about a quarter or a seventh of the
            memory. Adapters, norms and biases still train. `None` (default)
            keeps the weights as they are.

    Returns:
        `(Encoder, tokenizer)`. The tokenizer is KerasHub's, or, for a folder
        that only has `tokenizer.json` or has words that were added to its
        vocabulary, a
        `tf_adapters.encoders.huggingface_tokenizer.HuggingFaceTokenizer`. It is
        `None` if `with_tokenizer` is `False`.

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
    quantization.check_mode(quantize)
    encoder, tokenizer = _load(str(name), _policy(dtype), with_tokenizer)
    quantization.quantize_encoder(encoder, quantize)
    return encoder, tokenizer


def _load(
    name: str, dtype: keras.DTypePolicy | str | None, with_tokenizer: bool
) -> tuple[Encoder, Any]:
    source = find_encoder(name)
    trained = fine_tuned.find_fine_tuned(source)
    if trained is not None:
        return _load_trained(name, trained, dtype, with_tokenizer)
    is_folder = isinstance(source, pathlib.Path)
    if is_folder and _is_huggingface(source):
        backbone, fields = huggingface.load_huggingface(source, dtype)
        load_tokenizer = huggingface_tokenizer.load_huggingface_tokenizer
    else:
        if is_folder:
            config_checks.check_files(source)
            names = [cls.__name__ for cls in FAMILIES]
            preset_checks.check_backbone(source, names)
        load = keras_hub.models.Backbone.from_preset
        backbone = _from_preset(load, source, dtype=dtype)
        fields = fields_of(backbone)
        preset_checks.check_finite(backbone, name)
        load_tokenizer = _tokenizer_of_preset
    encoder = Encoder(name=name, backbone=backbone, **fields)
    if not with_tokenizer:
        return encoder, None
    tokenizer = load_tokenizer(source)
    _check_tokenizer(encoder, tokenizer)
    return encoder, tokenizer


def find_encoder(name: str) -> str | pathlib.Path:
    """Finds an encoder by name; downloads it from Hugging Face if needed.

    Args:
        name: As for `load_encoder`.

    Returns:
        Path of a folder, or the name or handle of a KerasHub preset.

    Raises:
        UserError: If there is no such encoder, or it cannot be downloaded.
    """
    if name == "minilm":
        return minilm.minilm_folder()
    if os.path.isdir(name):
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


def _policy(
    dtype: keras.DTypePolicy | str | None,
) -> keras.DTypePolicy | str | None:
    """Returns the dtype policy to load with, or `None` for Keras's default."""
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


def _load_trained(
    name: str,
    folder: pathlib.Path,
    dtype: keras.DTypePolicy | str | None,
    with_tokenizer: bool,
) -> tuple[Encoder, Any]:
    """Loads a fine-tuned encoder from an adapter folder, and its tokenizer."""
    config = fine_tuned.read_fine_tuned_config(folder)
    base, tokenizer = load_encoder(
        config["encoder"]["name"], dtype, with_tokenizer
    )
    fingerprint = base.fingerprint
    if fingerprint != config["encoder"]["fingerprint"]:
        raise AdapterError(
            f"The encoder in {folder} was trained from `{base.name}` with "
            f"fingerprint {config['encoder']['fingerprint'][:12]}, but "
            f"`{base.name}` now has {fingerprint[:12]}. Put it back, or train "
            "again." + rounding_advice(base)
        )
    fine_tuned.load_fine_tuned_weights(base.backbone, folder, config)
    return dataclasses.replace(base, name=name), tokenizer


def _is_huggingface(folder: pathlib.Path) -> bool:
    config = config_checks.read_json(folder / "config.json")
    if "registered_name" not in config and "model_type" not in config:
        raise UserError(
            f"`{folder}/config.json` describes no encoder. Expected: "
            "model_type (a Hugging Face folder) or registered_name (a folder "
            f"that KerasHub wrote). Received: the keys {cut(sorted(config))}"
        )
    return "model_type" in config


def _tokenizer_of_preset(
    source: str | pathlib.Path,
) -> keras_hub.tokenizers.Tokenizer:
    if isinstance(source, pathlib.Path):
        preset_checks.check_tokenizer(source)
    load = keras_hub.models.Tokenizer.from_preset
    if not has_tensorflow_text():
        return _from_preset(load, source)
    # Keras only finds classes that were imported.
    from tf_adapters.encoders import own_tokenizers

    return own_tokenizers.of_preset(_from_preset(load, source))


def _check_tokenizer(encoder: Encoder, tokenizer: Any) -> None:
    """Raises an error if a tokenizer fails or has ids that are too large."""
    try:
        tokenizer(["a"])
    # Several libraries find damaged files only now, and raise various errors.
    except Exception as error:
        raise UserError(
            f"The vocabulary of `{encoder.name}` is damaged "
            f"({type(error).__name__}: {cut(error)}). Copy it again from where "
            "it comes from."
        ) from error
    num_tokens = huggingface_tokenizer.count_ids(tokenizer)
    num_known = encoder.backbone.token_embedding.embeddings.shape[0]
    if num_tokens > num_known:
        raise UserError(
            f"The vocabulary of `{encoder.name}` has ids up to "
            f"{num_tokens - 1:,}, but its weights are for {num_known:,} "
            "tokens. Copy the folder again from where it comes from."
        )


def _from_preset(
    load: Callable[..., Any], name: str | pathlib.Path, **options: Any
) -> Any:
    """Calls `load`; an error of KerasHub is raised as a `UserError`."""
    try:
        return load(str(name), **options)
    # A constructor may raise any error for a damaged file.
    except Exception as error:
        raise UserError(
            f"KerasHub could not load the encoder `{cut(name)}`: {cut(error)} "
            "Expected: a preset with weights and a tokenizer, as "
            "`backbone.save_to_preset` and `tokenizer.save_to_preset` write "
            "them into one folder."
        ) from error
