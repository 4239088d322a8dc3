"""Makes tokenizers that run in a graph, and therefore in a SavedModel."""

from __future__ import annotations

from typing import TYPE_CHECKING
from typing import Any

import keras_hub

if TYPE_CHECKING:
    from tf_adapters.encoders.roberta_tokenizer import RobertaTokenizer
    from tf_adapters.encoders.word_piece import WordPieceTokenizer


def byte_pair(
    vocabulary: dict[str, int] | str,
    merges: list[str] | str,
    add_prefix_space: bool,
) -> RobertaTokenizer:
    """Returns a RoBERTa tokenizer with a given vocabulary.

    Args:
        vocabulary: Dict from token to id, or the path of `vocab.json`.
        merges: List of byte-pair merges, or the path of `merges.txt`.
        add_prefix_space: Whether to add a space before a text.
    """
    # Imported here, because loading also works without TensorFlow.
    from tf_adapters.encoders.roberta_tokenizer import RobertaTokenizer

    return RobertaTokenizer(
        vocabulary, merges, add_prefix_space=add_prefix_space
    )


def word_piece_class(is_mpnet: bool) -> type[WordPieceTokenizer]:
    """Returns MPNet's WordPiece tokenizer class if `is_mpnet`, else BERT's."""
    # Imported here, because loading also works without TensorFlow.
    from tf_adapters.encoders.mpnet_tokenizer import MPNetTokenizer
    from tf_adapters.encoders.word_piece import WordPieceTokenizer

    return MPNetTokenizer if is_mpnet else WordPieceTokenizer


# Types of model, normalizer and pre-tokenizer.
_MODERN_BERT = ("BPE", "NFC", "ByteLevel")


def of_content(
    content: dict[str, Any], cls_token: str | None
) -> keras_hub.tokenizers.Tokenizer | None:
    """Creates the tokenizer that a `tokenizer.json` describes.

    Args:
        content: Parsed content of the file.
        cls_token: The token before a text, such as "[CLS]". It distinguishes
            MPNet from BERT, and ModernBERT from unsupported kinds.

    Returns:
        KerasHub tokenizer, or `None` if the kind of tokenizer is not supported.
    """
    model, before = content["model"], content.get("pre_tokenizer") or {}
    cleaning = content.get("normalizer") or {}
    kind = (model.get("type"), cleaning.get("type"), before.get("type"))
    if kind != _MODERN_BERT and _has_own_tokens(content):
        return None
    if kind == ("WordPiece", "BertNormalizer", "BertPreTokenizer"):
        return word_piece_class(cls_token == "<s>")(
            _tokens_by_id(content),
            lowercase=cleaning["lowercase"],
            strip_accents=cleaning["strip_accents"],
            split_on_cjk=cleaning["handle_chinese_chars"],
            oov_token=model["unk_token"],
            suffix_indicator=model["continuing_subword_prefix"],
        )
    if kind == ("BPE", None, "ByteLevel"):
        return byte_pair(*_pairs(content), before["add_prefix_space"])
    is_modernbert = cls_token == "[CLS]"
    if kind == _MODERN_BERT and is_modernbert:
        # Imported here, because loading also works without TensorFlow.
        from tf_adapters.encoders import modernbert_tokenizer

        return modernbert_tokenizer.ModernBertTokenizer(
            *_pairs(content),
            [t["content"] for t in content["added_tokens"] if not t["special"]],
            add_prefix_space=before["add_prefix_space"],
        )
    return None


def _has_own_tokens(content: dict[str, Any]) -> bool:
    """Returns whether tokens were added that are not split like other texts."""
    known = content["model"].get("vocab") or {}
    return any(
        not token["special"] and token["content"] not in known
        for token in content.get("added_tokens") or []
    )


def _pairs(content: dict[str, Any]) -> tuple[dict[str, int], list[str]]:
    """Returns the vocabulary and the merges in a byte-pair `tokenizer.json`.

    The vocabulary is a dict from token to id. `content` is the parsed file.
    """
    merges = [
        merge if isinstance(merge, str) else " ".join(merge)
        for merge in content["model"]["merges"]
    ]
    tokens = _tokens_by_id(content)
    return {token: i for i, token in enumerate(tokens)}, merges


def _tokens_by_id(content: dict[str, Any]) -> list[str]:
    """Returns a list of the tokens in a `tokenizer.json`, in order of ids.

    The list includes added tokens, and a placeholder for each unused id.
    """
    ids = dict(content["model"]["vocab"])
    ids |= {token["content"]: token["id"] for token in content["added_tokens"]}
    tokens = [f"[unused id {i}]" for i in range(max(ids.values()) + 1)]
    for token, i in ids.items():
        tokens[i] = token
    return tokens
