"""Readers of encoders' folders and of tokenizers."""

import functools
import shutil

import keras_hub

from tests import tiny
from tests.fixtures import huggingface_folders
from tests.fuzz.reader import Reader
from tf_adapters.encoders import huggingface_tokenizer
from tf_adapters.encoders import load as load_lib

_TEXTS = ["a good film", "Ünïcode, 電影!", "", "\0", "x" * 40, "[MASK] </s>"]


def _copy(name, folder):
    shutil.copytree(
        huggingface_folders.folder(name), folder, dirs_exist_ok=True
    )


def _copy_tokenizer(name, folder):
    _copy(name, folder)
    (folder / "model.safetensors").unlink()


def _make_preset(folder):
    tiny.encoder(num_blocks=1).backbone.save_to_preset(str(folder))
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "##b", "film"]
    keras_hub.models.BertTokenizer(tokens).save_to_preset(str(folder))


def _ids(tokenizer):
    found = tokenizer(_TEXTS)
    return found if isinstance(found, list) else found.to_list()


def _read_encoder(folder):
    encoder, tokenizer = load_lib.load_encoder(folder)
    settings = (encoder.activation, encoder.layer_norm_epsilon)
    # The tokenizers have readers of their own; KerasHub's needs 0.4 seconds for
    # its first byte-level BPE.
    return encoder.fingerprint, repr(settings), tokenizer.get_vocabulary()


def _read_tokenizer(folder):
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(folder)
    return _special_ids(tokenizer), _ids(tokenizer)


def _read_bpe(folder):
    """Reads a tokenizer of KerasHub, whose first merge takes 0.4 seconds."""
    tokenizer = huggingface_tokenizer.load_huggingface_tokenizer(folder)
    merges = list(tokenizer.merges)
    return _special_ids(tokenizer), tokenizer.get_vocabulary(), merges


def _special_ids(tokenizer):
    names = ("start", "end", "pad")
    return [getattr(tokenizer, f"{name}_token_id") for name in names]


def _encoder(name):
    return Reader(functools.partial(_copy, name), _read_encoder)


def _tokenizer(name, read=_read_tokenizer):
    make = functools.partial(_copy_tokenizer, name)
    return Reader(make, read)


READERS = {
    **{
        f"Hugging Face's {name}": _encoder(name)
        for name in ("bert", "roberta_bare", "deberta", "modernbert")
    },
    "KerasHub's preset": Reader(_make_preset, _read_encoder),
    "tokenizer: WordPiece": _tokenizer("bert"),
    "tokenizer: BPE": _tokenizer("roberta_bare", _read_bpe),
    "tokenizer: SentencePiece": _tokenizer("xlm_roberta"),
    "tokenizer: SentencePiece of DeBERTa": _tokenizer("deberta"),
    "tokenizer: tokenizer.json": _tokenizer("modernbert"),
}
