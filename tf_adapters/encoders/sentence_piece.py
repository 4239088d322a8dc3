"""The SentencePiece models of ALBERT and DeBERTa-v3 as tokenizers."""

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.encoders.albert_tokenizer import AlbertTokenizer
from tf_adapters.encoders.deberta_tokenizer import DebertaTokenizer


def load(path, options):
    """Returns the tokenizer of a SentencePiece model.

    Args:
        path: Path of `spiece.model` (ALBERT) or `spm.model` (DeBERTa-v3).
        options: Dict that `tokenizer_config.json` holds.

    Raises:
        UserError: If an option has no counterpart in the graph.
    """
    # Bytes: a path in a file to be loaded would not be safe to Keras.
    proto = path.read_bytes()
    if path.name == "spm.model":
        _check_deberta(options, path)
        return DebertaTokenizer(proto)
    return AlbertTokenizer(
        proto,
        lowercase=options.get("do_lower_case") is not False,
        keep_accents=bool(options.get("keep_accents")),
    )


def _check_deberta(options, path):
    """Refuses what DeBERTa-v3's own tokenizer does only if it is asked to."""
    for key in ("do_lower_case", "split_by_punct"):
        if options.get(key):
            raise UserError(
                f"`{path.parent}/tokenizer_config.json`: {key}=true is not "
                "supported with `spm.model`. Remove `spm.model`, so that texts "
                "are tokenized from `tokenizer.json`."
            )


def of_preset(tokenizer):
    """Returns our tokenizer for one of KerasHub's, or what it was given.

    KerasHub's ALBERT does not lowercase, though its vocabularies do.
    """
    ours = {
        keras_hub.models.AlbertTokenizer: AlbertTokenizer,
        keras_hub.models.DebertaV3Tokenizer: DebertaTokenizer,
    }
    cls = ours.get(type(tokenizer))
    return tokenizer if cls is None else cls(tokenizer.proto)
