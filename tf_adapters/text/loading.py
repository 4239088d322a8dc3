"""Loads a text model from a folder or file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any
import zipfile

import keras

from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.encoders.encoder import as_encoder
from tf_adapters.encoders.load import load_encoder
from tf_adapters.interop import formats
from tf_adapters.interop import stored_adapter
from tf_adapters.text import parts
from tf_adapters.text.stored_fields import fields_of
from tf_adapters.text.text_model import TextModel

if TYPE_CHECKING:
    import os

    from tf_adapters.encoders.encoder import Encoder


# Arguments of `TextModel` that an adapter does not determine.
_OPTIONS = ("max_length", "learning_rate", "preprocessor", "seed")


def load(
    folder: str | os.PathLike[str],
    encoder: str | Path | Encoder | None = None,
    tokenizer: Any = None,
    dtype: str | None = None,
    quantize: str | None = None,
    adapters: Sequence[str | os.PathLike[str]] | None = None,
    **options: Any,
) -> TextModel:
    """Loads a trained adapter as a text model.

    Args:
        folder: Folder that `save_adapter` wrote, folder of a finished run,
            address `hf://owner/name@revision`, or `.keras` file of
            `TextModel.save`. With a `.keras` file, no other arguments are
            allowed. Folders of AdapterHub's `adapters` and of PEFT require
            `encoder`, because they do not name it.
        encoder: Name of the encoder, or an `Encoder` or a KerasHub backbone
            with its `tokenizer`.
            Default: the name of the encoder that the adapter was trained on.
        tokenizer: The encoder's tokenizer, if `encoder` is an `Encoder`.
            Default: `None`.
        dtype: See `load_encoder`. Not allowed with an `Encoder`.
        quantize: See `load_encoder`. Not allowed with an `Encoder`. Default: as
            in training. An adapter that was trained on an encoder without
            quantization may be used on the quantized encoder.
        adapters: Folders of a fusion's members, in the fusion's order, if they
            have moved; see `load_adapter`.
        **options: `max_length`, `learning_rate`, `preprocessor` and `seed`, see
            `TextModel`. Labels, head and method are those of the adapter.

    Raises:
        AdapterError: If there is no adapter, it is damaged, it has no head, or
            it was trained on another encoder.
        UserError: If the encoder cannot be found, or an argument is given that
            is not allowed.

    Examples:
        >>> model = tf_adapters.TextModel(
        ...     encoder, tokenizer, labels=("no", "yes"), max_length=32
        ... )
        >>> size = model.save_adapter("films")
        >>> tf_adapters.load("films").answer(["a fine film"])[0].keys()
        dict_keys(['label', 'probabilities'])
    """
    if Path(folder).suffix == ".keras" and Path(folder).is_file():
        given = encoder, tokenizer, dtype, quantize, adapters
        return _load_file(folder, given, options)
    _check_options(options)
    if isinstance(encoder, str | Path | None):
        parts.check_no_tokenizer(tokenizer)
    else:
        parts.check_loads(dtype=dtype, quantize=quantize)
    stored = stored_adapter.find_stored(folder)
    path = stored.path
    details = stored.config["details"] if stored.format == formats.OURS else {}
    if encoder is None:
        encoder = _encoder_of(stored)
    if isinstance(encoder, str | Path):
        mode = quantize or _quantization_of(stored)
        encoder, tokenizer = load_encoder(str(encoder), dtype, quantize=mode)
    makes_packer = options.get("preprocessor", "auto") == "auto"
    if makes_packer and options.get("max_length") is None:
        options["max_length"] = details.get("max_length")
    # A seed that is drawn, too, is the same for dropout and the order of texts.
    options["seed"] = parts.as_seed(options.get("seed", 0))
    adapter = parts.load_with_head(
        stored,
        as_encoder(encoder),
        adapters=adapters,
        name="default",
        seed=options["seed"],
    )
    model = TextModel.of_adapter(adapter, tokenizer, **options)
    model.text_fields = fields_of(stored)
    run = path.parent
    if (run / "config.yaml").is_file() and path.name == "adapter":
        model.run_folder = run
    return model


def _check_options(options: dict[str, Any]) -> None:
    unknown = sorted({*options} - {*_OPTIONS})
    if unknown:
        raise UserError(
            f"`load` does not take {cut(', '.join(unknown))}. Besides encoder "
            f"and tokenizer, it takes {', '.join(_OPTIONS)}; labels, head, "
            "windows and method are those of the stored adapter."
        )


def _load_file(
    path: str | os.PathLike[str],
    encoder_options: tuple[Any, ...],
    options: dict[str, Any],
) -> TextModel:
    if options or any(value is not None for value in encoder_options):
        raise UserError(
            f"{cut(path)} holds encoder, tokenizer and settings. Call "
            "`tf_adapters.load(path)` without other arguments."
        )
    if not zipfile.is_zipfile(path):
        raise AdapterError(
            f"{cut(path)} is damaged: it is no complete `.keras` file. Copy "
            "or save it again."
        )
    model = keras.saving.load_model(path)
    if not isinstance(model, TextModel):
        raise AdapterError(
            f"{cut(path)} holds no text model, but a {type(model).__name__}. "
            "Load it with `keras.saving.load_model(path)`."
        )
    return model


def _quantization_of(stored: stored_adapter.StoredAdapter) -> str | None:
    if stored.format != formats.OURS:
        return None
    return stored.config["encoder"].get("quantization")


def _encoder_of(stored: stored_adapter.StoredAdapter) -> str:
    if stored.format != formats.OURS:
        raise AdapterError(
            f"{cut(stored.path)} is an adapter of another library, which does "
            'not say which encoder it belongs to. Pass it: encoder="minilm".'
        )
    return stored.config["encoder"]["name"]
