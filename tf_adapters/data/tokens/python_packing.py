"""Packs texts into the integer inputs of an encoder, without TensorFlow."""

from collections.abc import Iterable
from collections.abc import Sequence
import itertools
import re
from typing import Any

import numpy as np

from tf_adapters.common.errors import UserError
from tf_adapters.data.tokens.packer import Packer
from tf_adapters.data.tokens.packer import not_texts

# The same characters as in `mask_tokens`.
_SPACES = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"


class PythonPacker(Packer):
    """Packs batches of texts in Python, with the same results as `TextPacker`.

    Args:
        tokenizer: Tokenizer that returns a list of ids for each text, as from
            `load_encoder` without TensorFlow.
        max_length: Largest number of tokens, including special tokens.
        takes_segments: See `TextPacker`.
    """

    def __call__(
        self,
        texts_a: Sequence[str],
        texts_b: Any = None,
        sequence_length: Any = None,
    ) -> dict[str, np.ndarray]:
        """Packs a batch.

        Args:
            texts_a: List of strings.
            texts_b: The second texts of pairs, or `None`.
            sequence_length: Length of the result. Longer rows are truncated.
                `None` (default) pads to the longest row.

        Returns:
            Dict of int32 arrays `(batch, length)`: `token_ids`,
            `padding_mask`, and `segment_ids` if the encoder has segments.

        Raises:
            UserError: If the texts are not lists of strings, the numbers of
                first and second texts differ, or `sequence_length` is too
                short.
        """
        limit = self.limit(sequence_length, 1 if texts_b is None else 2)
        ids, segments = self._pack(texts_a, texts_b, limit)
        length = sequence_length or max(map(len, ids), default=1)
        features = {
            "token_ids": _padded(ids, length, self.special_tokens.pad),
            "padding_mask": _padded([np.ones_like(i) for i in ids], length, 0),
        }
        if self.special_tokens.has_segments:
            features["segment_ids"] = _padded(segments, length, 0)
        return features

    def tokenize_rows(
        self, texts_a: Any, texts_b: Any = None
    ) -> tuple[list[np.ndarray], list[np.ndarray] | None]:
        """Returns token ids and segment ids; see `TextPacker.tokenize_rows`."""
        ids, segments = self._pack(texts_a, texts_b, self.max_length)
        return ids, segments if self.special_tokens.has_segments else None

    def token_arrays(self, texts: Any) -> list[np.ndarray]:
        """Returns an int32 array of tokens for each text of a list."""
        # TensorFlow's tokenizers ignore NUL, too.
        clean = [text.replace("\0", "") for text in texts]
        if self._mask is None:
            return self._tokenized(clean)
        # White space before a mask is dropped, see `mask_tokens`.
        mask = f"[{_SPACES}]*{re.escape(self._mask)}"
        parts = [re.split(mask, text) for text in clean]
        tokens = iter(self._tokenized([one for row in parts for one in row]))
        rows = []
        for row in parts:
            first, *others = itertools.islice(tokens, len(row))
            masked = [part for one in others for part in ([self.mask_id], one)]
            rows.append(_joined(first, *masked))
        return rows

    def _tokenized(self, texts: list[str]) -> list[np.ndarray]:
        rows = self.tokenizer(texts) if texts else []
        return [np.asarray(row, "int32") for row in rows]

    def _pack(self, texts_a: Any, texts_b: Any, limit: Any) -> tuple[Any, ...]:
        _check_texts("texts_a", texts_a)
        if texts_b is None:
            return self._singles(self.token_arrays(texts_a), limit)
        _check_texts("texts_b", texts_b)
        if len(texts_a) != len(texts_b):
            raise UserError(
                "There must be as many second texts as first ones. Received: "
                f"{len(texts_a)} in `texts_a`, {len(texts_b)} in `texts_b`"
            )
        tokens = self.token_arrays([*texts_a, *texts_b])
        pairs = zip(tokens[: len(texts_a)], tokens[len(texts_a) :], strict=True)
        return self._pairs(pairs, limit)

    def _singles(
        self, tokens: Any, limit: Any
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        special = self.special_tokens
        ids = [
            _joined([special.start], row[: limit - 2], [special.end])
            for row in tokens
        ]
        return ids, [np.zeros_like(row) for row in ids]

    def _pairs(
        self, pairs: Iterable[Any], limit: Any
    ) -> tuple[list[Any], list[Any]]:
        special, ids, segments = self.special_tokens, [], []
        room = limit - 2 - len(special.separators)
        for first, second in pairs:
            one, two = _in_turn(len(first), len(second), room)
            before = [special.start], first[:one], special.separators
            after = second[:two], [special.end]
            row, num_before = _joined(*before, *after), sum(map(len, before))
            ids.append(row)
            is_second = np.arange(len(row)) >= num_before
            number = special.second_segment or 0
            segments.append(number * is_second.astype("int32"))
        return ids, segments


def _check_texts(name: str, texts: Any) -> None:
    is_list = isinstance(texts, list | tuple | np.ndarray)
    if not is_list or not all(isinstance(text, str) for text in texts):
        raise not_texts(name, texts)


def _in_turn(first: Any, second: Any, room: Any) -> tuple[Any, Any]:
    """Returns how many tokens to keep of each of two texts.

    The texts, which have `first` and `second` tokens, take turns (round robin)
    until `room` tokens are kept.
    """
    one = min(first, max(room - room // 2, room - second))
    return one, min(second, room - one)


def _joined(*parts: Any) -> np.ndarray:
    return np.concatenate([np.asarray(part, "int32") for part in parts])


def _padded(rows: Any, length: Any, value: Any) -> np.ndarray:
    array = np.full((len(rows), length), value, "int32")
    for place, row in enumerate(rows):
        array[place, : len(row)] = row
    return array
