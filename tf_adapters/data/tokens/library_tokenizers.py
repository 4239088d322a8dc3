"""Converts encoders' tokenizers to Hugging Face's library `tokenizers`.

The results give the same ids, without special tokens. They do not need
TensorFlow, know the characters of each token, and can be stored as
`tokenizer.json`.
"""

from __future__ import annotations

from typing import Any

import keras_hub
import tokenizers
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers

# NUL is removed from texts before they are tokenized, so a piece that begins
# with NUL never occurs in a text.
_NEVER = "\0"
# Dict from SentencePiece's name of a set of normalization rules to equivalent
# normalizers. `normalizers.Precompiled` would lose combining characters.
_RULES = {
    "identity": (),
    "nfkc": (normalizers.NFKC,),
    "nmt_nfkc": (normalizers.Nmt, normalizers.NFKC),
}


def library_tokenizer(
    tokenizer: keras_hub.tokenizers.Tokenizer,
) -> tokenizers.Tokenizer | None:
    """Returns the equivalent tokenizer of Hugging Face's library `tokenizers`.

    Returns `None` if the kind of tokenizer is not supported.

    Args:
        tokenizer: KerasHub tokenizer from `load_encoder`.
    """
    if isinstance(tokenizer, keras_hub.tokenizers.WordPieceTokenizer):
        return _word_piece(tokenizer)
    if isinstance(tokenizer, keras_hub.tokenizers.BytePairTokenizer):
        return _byte_pair(tokenizer)
    if isinstance(tokenizer, keras_hub.tokenizers.SentencePieceTokenizer):
        return _unigram(tokenizer)
    return None


def _word_piece(
    tokenizer: Any,
) -> tokenizers.Tokenizer:
    tokens = tokenizer.get_vocabulary()
    # This library's own class cleans texts itself and turns off KerasHub's
    # cleaning. It stores the settings as `lowercases` and `strips_accents`.
    lowercase = getattr(tokenizer, "lowercases", tokenizer.lowercase)
    strip = getattr(tokenizer, "strips_accents", tokenizer.strip_accents)
    built = tokenizers.Tokenizer(
        models.WordPiece(
            {token: i for i, token in enumerate(tokens)},
            unk_token=tokenizer.oov_token,
            continuing_subword_prefix=tokenizer.suffix_indicator,
            max_input_chars_per_word=100,
        )
    )
    built.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=tokenizer.split_on_cjk,
        strip_accents=strip,
        lowercase=lowercase,
    )
    built.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return built


def _byte_pair(
    tokenizer: Any,
) -> tokenizers.Tokenizer:
    # A file of merges can begin with a line that gives its version.
    merges = [
        tuple(merge.split(" "))
        for merge in tokenizer.merges
        if not merge.startswith("#version")
    ]
    ids = dict(tokenizer.vocabulary)
    unknown = "<unk>" if "<unk>" in ids else None
    built = tokenizers.Tokenizer(models.BPE(ids, merges, unk_token=unknown))
    # Only ModernBERT's tokenizer has added tokens, and normalizes to NFC.
    added = getattr(tokenizer, "added_tokens", None)
    forms = [] if added is None else [normalizers.NFC()]
    built.normalizer = normalizers.Sequence([without_nul(), *forms])
    built.add_tokens(added or [])
    built.pre_tokenizer = pre_tokenizers.ByteLevel(
        add_prefix_space=tokenizer.add_prefix_space
    )
    return built


def _unigram(
    tokenizer: Any,
) -> tokenizers.Tokenizer | None:
    # Imported here, because few tokenizers need it. Of the modules that define
    # these messages a process can load only one: that of transformers.
    from transformers.convert_slow_tokenizer import import_protobuf

    messages: Any = import_protobuf()
    model = messages.ModelProto.FromString(tokenizer.proto)
    kinds = messages.TrainerSpec
    if model.trainer_spec.model_type != kinds.UNIGRAM:
        return None
    pieces = [(_spelled(piece), piece.score) for piece in model.pieces]
    unknown = model.trainer_spec.unk_id
    if isinstance(tokenizer, keras_hub.models.XLMRobertaTokenizer):
        # The first ids are fairseq's special tokens.
        special = ("<s>", "<pad>", "</s>", "<unk>")
        pieces = [(_NEVER + name, 0.0) for name in special] + pieces[3:]
        unknown = tokenizer.unk_token_id
    built = tokenizers.Tokenizer(models.Unigram(pieces, unknown, False))
    built.normalizer = normalizers.Sequence(
        [
            without_nul(),
            *_cleaning(tokenizer),
            *_rules(model.normalizer_spec),
            normalizers.Replace(tokenizers.Regex("^ +| +$"), ""),
            normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    )
    built.pre_tokenizer = pre_tokenizers.Metaspace()
    return built


def _spelled(piece: Any) -> str:
    """Returns the text of a SentencePiece piece.

    A special piece gets a prefix that never occurs in texts.
    """
    is_text = piece.type in (piece.NORMAL, piece.USER_DEFINED)
    return piece.piece if is_text else _NEVER + piece.piece


def token_name(tokenizer: tokenizers.Tokenizer, token_id: int) -> str:
    """Returns the name of a token for messages, or `"id <id>"` if unknown."""
    name = tokenizer.id_to_token(token_id)
    return f"id {token_id}" if name is None else name.removeprefix(_NEVER)


def without_nul() -> normalizers.Normalizer:
    """Returns a normalizer that removes NUL characters, as packers do."""
    return normalizers.Replace("\0", "")


def _rules(spec: Any) -> list[normalizers.Normalizer]:
    """Returns normalizers for a SentencePiece model's normalization rules."""
    if spec.name in _RULES:
        return [rule() for rule in _RULES[spec.name]]
    return [normalizers.Precompiled(spec.precompiled_charsmap)]


def _cleaning(
    tokenizer: keras_hub.tokenizers.SentencePieceTokenizer,
) -> list[normalizers.Normalizer]:
    """Returns normalizers that clean texts as `AlbertTokenizer` does.

    For other tokenizers, the list is empty.
    """
    if not hasattr(tokenizer, "keeps_accents"):
        return []
    steps = [normalizers.Replace(tokenizers.Regex("``|''"), '"')]
    if not tokenizer.keeps_accents:
        marks = tokenizers.Regex(r"\p{M}")
        steps += [normalizers.NFKD(), normalizers.Replace(marks, "")]
    return steps + [normalizers.Lowercase()] * tokenizer.lowercases
