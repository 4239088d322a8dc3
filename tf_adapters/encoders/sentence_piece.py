"""Loads the SentencePiece models of ALBERT and DeBERTa-v3."""

from pathlib import Path
from typing import Any

from tf_adapters.common.errors import UserError
from tf_adapters.encoders.albert_tokenizer import AlbertTokenizer
from tf_adapters.encoders.deberta_tokenizer import DebertaTokenizer
from tf_adapters.encoders.sentence_piece_checks import check_model


def load(
    path: Path, options: dict[str, Any]
) -> AlbertTokenizer | DebertaTokenizer:
    """Returns the tokenizer of a SentencePiece model.

    Args:
        path: Path of `spiece.model` (ALBERT) or `spm.model` (DeBERTa-v3).
        options: Content of `tokenizer_config.json`, a dict.

    Raises:
        UserError: If the model is damaged, or an option is not supported in a
            graph.
    """
    # Pass bytes instead of a path, since Keras would refuse a saved file that
    # contains a path as unsafe.
    check_model(path)
    proto = path.read_bytes()
    if path.name == "spm.model":
        _check_deberta(options, path)
        return DebertaTokenizer(proto)
    return AlbertTokenizer(
        proto,
        lowercase=options.get("do_lower_case") is not False,
        keep_accents=bool(options.get("keep_accents")),
    )


def _check_deberta(options: dict[str, Any], path: Path) -> None:
    """Raises a `UserError` if an option of DeBERTa-v3 is not supported."""
    for key in ("do_lower_case", "split_by_punct"):
        if options.get(key):
            raise UserError(
                f"`{path.parent}/tokenizer_config.json`: {key}=true is not "
                "supported with `spm.model`. Remove `spm.model`, so that texts "
                "are tokenized from `tokenizer.json`."
            )
