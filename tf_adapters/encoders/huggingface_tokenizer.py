"""Loads tokenizers from the vocabulary files of Hugging Face folders.

`vocab.txt`, `vocab.json` with `merges.txt`, and the SentencePiece models of
XLM-R, ALBERT and DeBERTa-v3 are loaded as KerasHub tokenizers, which run in a
graph and therefore in a SavedModel. If a folder only has `tokenizer.json`, if
words were added to its vocabulary, or if TensorFlow Text is not installed, the
tokenizer of transformers is used.
"""

from __future__ import annotations

from collections.abc import Iterator
import json
import pathlib
from typing import TYPE_CHECKING
from typing import Any

import keras_hub

from tf_adapters.common.errors import UserError
from tf_adapters.common.errors import cut
from tf_adapters.common.errors import shown
from tf_adapters.common.extras import has_tensorflow_text
from tf_adapters.encoders import config_checks
from tf_adapters.encoders import graph_tokenizers
from tf_adapters.encoders.sentence_piece_checks import check_model

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping

    from tf_adapters.encoders.word_piece import WordPieceTokenizer


_FILES = (
    "`vocab.txt`, `vocab.json` with `merges.txt`, `sentencepiece.bpe.model`, "
    "`spiece.model`, `spm.model` or `tokenizer.json`"
)

# Classes of transformers whose words are those of BERT's WordPiece.
_WORD_PIECE = (
    *("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"),
    *("MPNetTokenizer", "PreTrainedTokenizer", "TokenizersBackend"),
    *("BertTokenizerLegacy", "ConvBertTokenizer", "FunnelTokenizer"),
    *("LayoutLMTokenizer", "LxmertTokenizer", "MobileBertTokenizer"),
    *("RealmTokenizer", "RetriBertTokenizer", "SqueezeBertTokenizer"),
)

# Classes of transformers that read `tokenizer.json` as it is.
_GENERIC = ("PreTrainedTokenizerFast", "TokenizersBackend")
# Special tokens that a folder may add to its vocabulary without saying so.
_SPECIAL = (
    *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
    *("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
)
_FLAGS = (
    "add_prefix_space",
    "do_lower_case",
    "keep_accents",
    "split_by_punct",
    "strip_accents",
    "tokenize_chinese_chars",
)


def load_huggingface_tokenizer(
    folder: str | pathlib.Path,
) -> HuggingFaceTokenizer | keras_hub.tokenizers.Tokenizer:
    """Returns the tokenizer of a Hugging Face folder.

    Args:
        folder: Path of a folder with `config.json` and a vocabulary, such as
            `vocab.txt`.

    Raises:
        UserError: If there is no vocabulary, or it lacks a special token.
    """
    folder = pathlib.Path(folder)
    config = config_checks.read_json(folder / "config.json")
    model_type = config.get("model_type")
    config_checks.check_files(folder)
    config_checks.check_lengths(config, folder / "config.json")
    try:
        return _load(folder, model_type)
    except UserError:
        raise
    # Errors of three libraries, which have no common base class. A panic of
    # `tokenizers`, which is written in Rust, is not even an `Exception`.
    except BaseException as error:
        is_panic = type(error).__name__ == "PanicException"
        if not isinstance(error, Exception) and not is_panic:
            raise
        raise UserError(
            f"The vocabulary in `{folder}` cannot be read "
            f"({type(error).__name__}: {cut(error)}). Copy it again from where "
            "it comes from."
        ) from error


def _load(
    folder: pathlib.Path, model_type: Any
) -> HuggingFaceTokenizer | keras_hub.tokenizers.Tokenizer:
    if not has_tensorflow_text():
        return HuggingFaceTokenizer(folder)
    if _has_added_words(folder):
        return _of_transformers(folder)
    if model_type in ("roberta", "xlm-roberta"):
        if (folder / "sentencepiece.bpe.model").is_file():
            check_model(folder / "sentencepiece.bpe.model")
            return keras_hub.models.XLMRobertaTokenizer(
                proto=str(folder / "sentencepiece.bpe.model"),
                _allow_python_workflow=False,
            )
        if (folder / "vocab.json").is_file():
            return graph_tokenizers.byte_pair(
                str(folder / "vocab.json"),
                str(folder / "merges.txt"),
                _options(folder).get("add_prefix_space") or False,
            )
    elif model_type in ("albert", "deberta-v2"):
        name = "spiece.model" if model_type == "albert" else "spm.model"
        if (folder / name).is_file():
            # Imported here, because loading also works without TensorFlow.
            from tf_adapters.encoders import sentence_piece

            return sentence_piece.load(folder / name, _options(folder))
    elif (folder / "vocab.txt").is_file():
        if _needs_transformers(folder):
            return _of_transformers(folder)
        return _word_piece(folder, model_type)
    if (folder / "tokenizer.json").is_file():
        return HuggingFaceTokenizer(folder)
    raise UserError(
        f"`{folder}` holds no vocabulary. Expected: {_FILES}, as suits its "
        f"model_type. Received: model_type={shown(model_type)} and the files "
        f"{cut(sorted(path.name for path in folder.iterdir()))}"
    )


def _options(folder: pathlib.Path) -> dict[str, Any]:
    path = folder / "tokenizer_config.json"
    options = config_checks.read_json(path) if path.is_file() else {}
    for key in _FLAGS:
        config_checks.check_flag(key, options.get(key), path)
    return options


def _class_name(folder: pathlib.Path) -> str | None:
    """Returns the name of a tokenizer's class, or `None` if no file has it."""
    config = config_checks.read_json(folder / "config.json")
    name = _options(folder).get("tokenizer_class")
    name = name or config.get("tokenizer_class")
    return str(name) if name else None


def _of_transformers(folder: pathlib.Path) -> HuggingFaceTokenizer:
    try:
        return HuggingFaceTokenizer(folder)
    except (ImportError, ValueError) as error:
        raise UserError(
            f"transformers cannot load the tokenizer `{_class_name(folder)}` "
            f"of `{folder}`: {cut(error)} Install what it needs, or save it "
            "as `tokenizer.json`."
        ) from error


def _needs_transformers(folder: pathlib.Path) -> bool:
    """Returns whether `vocab.txt` alone does not say how to tokenize.

    This is so for tokenizers that split words in another way, such as
    `BertJapaneseTokenizer`, and for classes that only read `tokenizer.json`.
    """
    name = _class_name(folder) or "BertTokenizer"
    if name in _GENERIC and (folder / "tokenizer.json").is_file():
        return True
    return name.removesuffix("Fast") not in _WORD_PIECE


def _has_added_words(folder: pathlib.Path) -> bool:
    """Returns whether words were added that the vocabulary does not have."""
    options = _options(folder)
    entries = options.get("added_tokens_decoder")
    entries = entries.values() if isinstance(entries, dict) else ()
    entries = [entry for entry in entries if isinstance(entry, dict)]
    added = {e.get("content") for e in entries if not e.get("special")}
    if (folder / "added_tokens.json").is_file():
        added |= set(config_checks.read_json(folder / "added_tokens.json"))
    # Special tokens are plain text, as in every text.
    added -= {e.get("content") for e in entries if e.get("special")}
    added -= {*_declared(folder, options), *_SPECIAL, None}
    return bool(added - _vocabulary(folder)) if added else False


def _declared(
    folder: pathlib.Path, options: dict[str, Any]
) -> Iterator[str | None]:
    """Yields the special tokens that a folder's files name, and other texts."""
    path = folder / "special_tokens_map.json"
    names = config_checks.read_json(path) if path.is_file() else {}
    for value in (*options.values(), *names.values()):
        for one in value if isinstance(value, list) else [value]:
            token = one.get("content") if isinstance(one, dict) else one
            if isinstance(token, str):
                yield token


def _vocabulary(folder: pathlib.Path) -> set[str]:
    """Returns the tokens in `vocab.txt` or `vocab.json`, as a set."""
    if (folder / "vocab.txt").is_file():
        text = (folder / "vocab.txt").read_text(encoding="utf-8")
        return set(text.split("\n"))
    if (folder / "vocab.json").is_file():
        return set(config_checks.read_json(folder / "vocab.json"))
    return set()


def _word_piece(folder: pathlib.Path, model_type: Any) -> WordPieceTokenizer:
    options = _options(folder)
    lowercase = options.get("do_lower_case")
    if lowercase is None and (folder / "tokenizer.json").is_file():
        content = config_checks.read_json(folder / "tokenizer.json")
        lowercase = (content.get("normalizer") or {}).get("lowercase")
    # Split at "\n" only: `str.split` would also split tokens that are spaces.
    text = (folder / "vocab.txt").read_text(encoding="utf-8")
    tokens = text.removesuffix("\n").split("\n")
    # The last one counts if a token is there twice, as in transformers.
    ids = {token: i for i, token in enumerate(tokens)}
    return graph_tokenizers.word_piece_class(model_type == "mpnet")(
        [
            token if ids[token] == i else f"[unused id {i}]"
            for i, token in enumerate(tokens)
        ],
        # transformers' BertTokenizer lowercases by default.
        lowercase=True if lowercase is None else lowercase,
        strip_accents=options.get("strip_accents"),
        split_on_cjk=options.get("tokenize_chinese_chars") is not False,
    )


class HuggingFaceTokenizer:
    """Wraps a tokenizer of transformers for use in a `TextPacker`.

    Attributes:
        start_token_id, end_token_id, pad_token_id, unk_token_id,
            mask_token_id: Integers.
        vocabulary: Dict from token to id.
        separator_ids: List of the ids of the tokens between two texts.
        second_segment: Segment id of the second text, 0 or 1.

    Args:
        folder: Path of a folder with `tokenizer.json`.
    """

    def __init__(self, folder: str | pathlib.Path) -> None:
        # Imported here: it takes seconds, and most encoders do not need it.
        import transformers

        # Without `False`, transformers asks on the terminal whether to run code
        # that a folder may have. Nobody shall be asked.
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False
        )
        # Finds the special tokens by tokenizing a pair of equal texts. (An
        # empty second text would not be treated as a pair.)
        pair = self._tokenizer("a", "a", return_token_type_ids=True)
        length = len(self(["a"])[0])
        if len(pair["input_ids"]) == 2 * length:
            raise UserError(
                f"The tokenizer in `{folder}` adds no tokens around a text: "
                "its `tokenizer.json` has no post-processor. Save it again "
                "with the transformers class of its model."
            )
        self.start_token_id, *inside, self.end_token_id = pair["input_ids"]
        self.separator_ids = inside[length:-length]
        self.second_segment = max(pair["token_type_ids"])
        self.vocabulary = self._tokenizer.get_vocab()
        self.pad_token_id = self._tokenizer.pad_token_id
        self.unk_token_id = self._tokenizer.unk_token_id
        self.mask_token_id = self._tokenizer.mask_token_id

    def __call__(self, texts: Iterable[str]) -> list[list[int]]:
        """Returns a list of lists of token ids, without special tokens."""
        return self._encode(texts)["input_ids"]

    def get_vocabulary(self) -> list[str]:
        """Returns the list of tokens in the order of their ids."""
        ids = range(len(self._tokenizer))
        return self._tokenizer.convert_ids_to_tokens(list(ids))

    def with_offsets(
        self, texts: Iterable[str]
    ) -> list[tuple[list[int], list[tuple[int, int]]]]:
        """Returns, for each text, its token ids and the tokens' offsets.

        The offsets of a token are the index of its first character and the
        index after its last character.
        """
        self._check_fast("has no offsets, which spans and explanations need")
        encoded = self._encode(texts, return_offsets_mapping=True)
        return list(
            zip(encoded["input_ids"], encoded["offset_mapping"], strict=True)
        )

    def _encode(
        self, texts: Iterable[str], **options: Any
    ) -> Mapping[str, Any]:
        return self._tokenizer(
            list(texts),
            add_special_tokens=False,
            split_special_tokens=True,
            truncation=False,
            padding=False,
            verbose=False,
            **options,
        )

    def save(self, folder: str | pathlib.Path) -> None:
        """Writes the tokenizer's files to a folder, to be loaded again."""
        self._tokenizer.save_pretrained(str(folder))

    def in_graph(self) -> keras_hub.tokenizers.Tokenizer | None:
        """Returns a KerasHub tokenizer with the same ids, for export.

        Returns:
            A tokenizer built from `tokenizer.json`, or `None` if it is neither
            BERT's WordPiece nor the byte-level BPE of RoBERTa or ModernBERT.
        """
        if not self._tokenizer.is_fast:
            return None
        content = json.loads(self.to_json())
        return graph_tokenizers.of_content(content, self._tokenizer.cls_token)

    def to_json(self) -> str:
        """Returns the content of `tokenizer.json`, as a string."""
        self._check_fast("has no form as `tokenizer.json`")
        return self._tokenizer.backend_tokenizer.to_str()

    def _check_fast(self, what: str) -> None:
        if not self._tokenizer.is_fast:
            raise UserError(
                f"The tokenizer `{type(self._tokenizer).__name__}` is written "
                f"in Python and {what}."
            )


def count_ids(
    tokenizer: HuggingFaceTokenizer | keras_hub.tokenizers.Tokenizer,
) -> int:
    """Returns the largest token id of a tokenizer, plus 1."""
    if isinstance(
        tokenizer, HuggingFaceTokenizer | keras_hub.models.RobertaTokenizer
    ):
        vocabulary: Any = tokenizer.vocabulary
        return 1 + max(vocabulary.values())
    return tokenizer.vocabulary_size()
