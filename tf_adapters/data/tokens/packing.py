"""Packs texts into the integer inputs of an encoder.

The same code packs for training, prediction and export, so the ids are the
same in all three. Tokens are truncated to the maximum length and surrounded by
special tokens. If two texts are too long together, tokens are taken from each
in turn until the length is reached (round robin, as in KerasHub's
`MultiSegmentPacker`). `longest_first` in transformers gives the same result,
except where an odd number of tokens fits. There the last token goes to the
longer text, or to the second text if both are equally long. Here it goes to the
first text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from typing import Any

import numpy as np
import tensorflow as tf

from tf_adapters.common import progress_bar
from tf_adapters.common.extras import needs_tensorflow_text
from tf_adapters.data.tokens import assertions
from tf_adapters.data.tokens import mask_tokens
from tf_adapters.data.tokens import window_packing
from tf_adapters.data.tokens.packer import Packer
from tf_adapters.data.tokens.packer import not_texts
from tf_adapters.data.tokens.tokenization import Tokenization

with needs_tensorflow_text():
    import tensorflow_text as tf_text

if TYPE_CHECKING:
    from tf_adapters.data.tokens.windows import Windows


_ROWS_AT_ONCE = 1024


class TextPacker(Packer):
    """Packs batches of texts, eagerly or in a `tf.function`.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        max_length: Largest number of tokens, including special tokens.
        takes_segments: Whether the encoder takes segment ids, as in
            `encoder.takes_segments`. `None` (default) assumes the model that
            the tokenizer was made for. This is wrong for a BERT with XLM-R's
            vocabulary (multilingual-e5), because XLM-R has no segments.

    Raises:
        UserError: If `max_length` is not an integer or has no room for text.

    Examples:
        >>> packer = tf_adapters.TextPacker(tokenizer, max_length=32)
        >>> pairs = packer(["a fine film", "who?"], ["by whom?", "she"])
        >>> sorted(pairs)
        ['padding_mask', 'segment_ids', 'token_ids']
        >>> int(pairs["segment_ids"][1][-1])  # Padding.
        0
    """

    def __init__(
        self,
        tokenizer: Any,
        max_length: int,
        takes_segments: bool | None = None,
    ) -> None:
        super().__init__(tokenizer, max_length, takes_segments)
        self._tokenize = Tokenization(tokenizer)

    def __call__(
        self,
        texts_a: Sequence[str],
        texts_b: Any = None,
        sequence_length: Any = None,
        is_pair: Any = None,
    ) -> dict[str, Any]:
        """Packs a batch.

        Args:
            texts_a: List of strings, or string tensor of shape `(batch,)`.
            texts_b: The second texts of pairs, or `None`.
            sequence_length: Length of the result, with room for at least one
                token of each text. Longer rows are truncated. `None` (default)
                pads to the longest row.
            is_pair: Boolean tensor `(batch,)`. Rows in which it is false are
                packed as a single text, and their second text is ignored.
                `None` (default) means that all rows are pairs, if there are
                second texts.

        Returns:
            Dict of int32 tensors `(batch, length)`: `token_ids`,
            `padding_mask`, and `segment_ids` if the encoder has segments.

        Raises:
            UserError: If the texts are not lists of strings, `sequence_length`
                is too short, or the numbers of first and second texts differ.
                In a graph with an unknown batch size, the latter raises
                `tf.errors.InvalidArgumentError`.
        """
        texts_a = _strings("texts_a", texts_a)
        if texts_b is not None:
            texts_b = _strings("texts_b", texts_b)
            inputs = {"texts_a": texts_a, "texts_b": texts_b}
            if is_pair is not None:
                inputs["is_pair"] = tf.convert_to_tensor(is_pair, tf.bool)
            inputs = assertions.same_number_of_rows(inputs)
            texts_a, texts_b = inputs["texts_a"], inputs["texts_b"]
            is_pair = inputs.get("is_pair")
        limit = self.limit(sequence_length, 1 if texts_b is None else 2)
        rows, first_lengths = self._pack(texts_a, texts_b, limit, is_pair)
        return self._features(rows, first_lengths, sequence_length)

    def pack_tokens(self, tokens: Any) -> dict[str, Any]:
        """Packs texts that are tokenized already, none of them in pairs.

        `tokens` is a ragged tensor `(batch, tokens)` without special tokens.
        """
        rows = self._join(self._framed(tokens, self.max_length))
        lengths = tf.cast(rows.row_lengths(), tf.int32)
        return self._features(rows, lengths, None)

    def pack_windows(self, texts: Any, windows: Windows) -> dict[str, Any]:
        """Packs long texts as windows; see `window_packing`."""
        texts = _strings("texts", texts)
        return window_packing.pack_windows(self, texts, windows)

    def _framed(self, tokens: Any, limit: Any) -> list[Any]:
        """Returns the parts of rows with one text each, for `_join`.

        These are the start token, up to `limit - 2` tokens of the text, and the
        end token.
        """
        special = self.special_tokens
        return [[special.start], tokens[:, : limit - 2], [special.end]]

    def _features(
        self, rows: Any, first_lengths: Any, sequence_length: int | None
    ) -> dict[str, Any]:
        shape = [None, sequence_length]
        if sequence_length is None:
            # At least 1: encoders read the first token even without rows.
            longest = tf.maximum(rows.bounding_shape(axis=1), 1)
            shape = tf.stack([-1, longest])
        token_ids = rows.to_tensor(self.special_tokens.pad, shape=shape)
        positions = tf.range(tf.shape(token_ids)[1])[tf.newaxis]
        mask = positions < tf.cast(rows.row_lengths(), tf.int32)[:, tf.newaxis]
        features = {
            "token_ids": token_ids,
            "padding_mask": tf.cast(mask, tf.int32),
        }
        if self.special_tokens.has_segments:
            second = mask & (positions >= first_lengths[:, tf.newaxis])
            features["segment_ids"] = (
                tf.cast(second, tf.int32) * self.special_tokens.second_segment
            )
        return features

    def tokenize_rows(
        self, texts_a: Sequence[str], texts_b: Any = None
    ) -> tuple[list[Any], list[Any] | None]:
        """Tokenizes the texts of a data set, without padding.

        Args:
            texts_a: List of strings.
            texts_b: The second texts of pairs, or `None`.

        Returns:
            Two lists with an unpadded int32 array for each row: token ids,
            including special tokens, and segment ids. The second list is
            `None` if the encoder has no segments.
        """
        ids, segments = [], []
        with progress_bar.progress_bar(
            len(texts_a),
            self.progress_title,
            unit="text",
            delay=progress_bar.DELAY,
        ) as bar:
            for start in range(0, len(texts_a), _ROWS_AT_ONCE):
                part = slice(start, start + _ROWS_AT_ONCE)
                batch, second = self._tokenize_part(
                    texts_a[part], None if texts_b is None else texts_b[part]
                )
                ids += batch
                segments += second
                bar.update(len(batch))
        return ids, segments if self.special_tokens.has_segments else None

    def _tokenize_part(
        self, texts_a: Any, texts_b: Any
    ) -> tuple[list[np.ndarray], list[Any]]:
        """Returns lists of the token ids and the segment ids of some rows."""
        rows, first_lengths = self._pack(texts_a, texts_b, self.max_length)
        batch = np.split(rows.values.numpy(), rows.row_splits.numpy()[1:-1])
        segments = [
            (np.arange(len(row)) >= first).astype(np.int32)
            * np.int32(self.special_tokens.second_segment or 0)
            for row, first in zip(batch, first_lengths.numpy(), strict=True)
        ]
        return batch, segments

    def _pack(
        self, texts_a: Any, texts_b: Any, limit: Any, is_pair: Any = None
    ) -> tuple[Any, Any]:
        """Returns ragged token ids, and the lengths of the first segments."""
        special = self.special_tokens
        if texts_b is None:
            tokens = self.tokenize(texts_a)
            rows = first_parts = self._framed(tokens, limit)
        else:
            # One call for both: tracing a tokenizer can take seconds.
            tokens = self.tokenize(tf.concat([texts_a, texts_b], 0))
            count = tf.shape(texts_a)[0]
            num_special = 2 + len(special.separators)
            first, second = tf_text.RoundRobinTrimmer(limit - num_special).trim(
                [tokens[:count], tokens[count:]]
            )
            separators = special.separators
            if is_pair is not None:
                alone = tokens[:count, : limit - 2]
                first = _choose(is_pair, first, alone)
                second = _choose(is_pair, second, second[:, :0])
                separators = tf.gather(
                    tf.ragged.constant([[], separators], tf.int32),
                    tf.cast(is_pair, tf.int32),
                )
            first_parts = [[special.start], first, separators]
            rows = [*first_parts, second, [special.end]]
        rows, first_rows = self._join(rows), self._join(first_parts)
        first_lengths = tf.cast(first_rows.row_lengths(), tf.int32)
        if is_pair is not None:
            # The end token of a single text belongs to the first segment.
            first_lengths += tf.cast(~is_pair, tf.int32)
        return rows, first_lengths

    def _join(self, parts: Any) -> Any:
        """Concatenates the parts of each row to ragged token ids.

        A part is a ragged tensor, or a list of ids that is the same in all
        rows.
        """
        (ragged, *_) = [p for p in parts if isinstance(p, tf.RaggedTensor)]
        count = ragged.nrows()
        return tf.concat(
            [
                part
                if isinstance(part, tf.RaggedTensor)
                else tf.tile(tf.constant([part], tf.int32), [count, 1])
                for part in parts
            ],
            axis=1,
        )

    def token_arrays(self, texts: Any) -> list[np.ndarray]:
        """Returns an int32 array of tokens for each text of a list."""
        rows = self.tokenize(texts)
        return np.split(rows.values.numpy(), rows.row_splits.numpy()[1:-1])

    def tokenize(self, texts: Any) -> Any:
        """Returns the token ids of each text as a ragged int32 tensor.

        Tokens are not truncated, and special tokens are not added.
        """
        # A NUL ends a string in TensorFlow's regular expressions.
        texts = tf.strings.regex_replace(texts, r"\x{0}", "")
        if self._mask is None:
            return self._tokenize(texts)
        return mask_tokens.tokenize_with_masks(
            self._tokenize, texts, self._mask, self.mask_id
        )


def _strings(name: str, texts: Any) -> Any:
    """Returns a batch of texts as a string tensor `(batch,)`."""
    try:
        tensor = tf.convert_to_tensor(texts, tf.string)
    except (TypeError, ValueError) as error:
        raise not_texts(name, texts) from error
    if tensor.shape.rank not in (1, None):
        raise not_texts(name, texts)
    return tensor


def _choose(condition: Any, rows: Any, others: Any) -> Any:
    """Takes each row from `rows` if `condition` holds, else from `others`."""
    count = tf.size(condition)
    indices = tf.range(count) + tf.where(condition, 0, count)
    return tf.gather(tf.concat([rows, others], 0), indices)
