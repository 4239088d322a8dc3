"""Texts become the integer inputs of an encoder.

One function packs for training, prediction and export, so the ids are the
same in all three: tokens, cut to the longest length, framed by special tokens.
Of two texts that are too long together, tokens are taken in turn, one of each,
until the length is full (round robin, as in KerasHub's `MultiSegmentPacker`).
transformers' `longest_first` agrees but for the odd token, which it gives to
the longer text, or to the second of two equals, and this to the first.
"""

import dataclasses

import keras_hub
import numpy as np
import tensorflow as tf
import tensorflow_text as tf_text

_ROWS_AT_ONCE = 1024


@dataclasses.dataclass(frozen=True)
class Frame:
    """The special tokens around one or two texts.

    Attributes:
        start: Id before the first text.
        separators: Ids between the first text and the second.
        end: Id after the last text.
        pad: Id after the end.
        second_segment: Segment number of the second text, or `None` where
            the encoder has no segments.
    """

    start: int
    separators: tuple[int, ...]
    end: int
    pad: int
    second_segment: int | None


def frame_of(tokenizer):
    """Returns the `Frame` of a tokenizer from `load_encoder`.

    BERT, ELECTRA and DistilBERT: `[CLS] a [SEP] b [SEP]`. RoBERTa and XLM-R:
    `<s> a </s></s> b </s>`.

    Raises:
        ValueError: If the tokenizer belongs to none of these.
    """
    models = keras_hub.models
    if hasattr(tokenizer, "separator_ids"):
        separators = tuple(tokenizer.separator_ids)
        second_segment = tokenizer.second_segment
    elif isinstance(tokenizer, (models.BertTokenizer, models.ElectraTokenizer)):
        separators, second_segment = (tokenizer.end_token_id,), 1
    elif isinstance(tokenizer, models.DistilBertTokenizer):
        separators, second_segment = (tokenizer.end_token_id,), None
    elif isinstance(
        tokenizer, (models.RobertaTokenizer, models.XLMRobertaTokenizer)
    ):
        separators, second_segment = (tokenizer.end_token_id,) * 2, None
    else:
        raise ValueError(
            "Expected a tokenizer of BERT, RoBERTa, XLM-R, DistilBERT or "
            f"ELECTRA. Received: {type(tokenizer).__name__}"
        )
    # `load_encoder` notes what the backbone takes; some pair a BERT with
    # XLM-R's vocabulary.
    takes_segments = getattr(
        tokenizer, "takes_segments", second_segment is not None
    )
    return Frame(
        start=tokenizer.start_token_id,
        separators=separators,
        end=tokenizer.end_token_id,
        pad=tokenizer.pad_token_id,
        second_segment=(second_segment or 0) if takes_segments else None,
    )


class TextPacker:
    """Packs batches of texts, eagerly or in a `tf.function`.

    Args:
        tokenizer: Tokenizer from `load_encoder`.
        max_length: Longest number of tokens, special tokens included.

    Raises:
        ValueError: If `max_length` leaves no room for text.
    """

    def __init__(self, tokenizer, max_length):
        self.tokenizer = tokenizer
        self.max_length = max_length
        self.frame = frame_of(tokenizer)
        num_special = 2 + len(self.frame.separators)
        if max_length < num_special + 2:
            raise ValueError(
                "Invalid value for argument `max_length`: two texts need "
                f"{num_special} special tokens and one token each. Received: "
                f"max_length={max_length}"
            )
        # KerasHub tokenizers have other, slower or different, eager paths.
        self._graph_tokenizer = tokenizer
        if isinstance(tokenizer, keras_hub.tokenizers.Tokenizer):
            self._graph_tokenizer = tf.function(
                lambda texts: tokenizer(texts),
                input_signature=[tf.TensorSpec([None], tf.string)],
            )

    def __call__(
        self, texts_a, texts_b=None, sequence_length=None, is_pair=None
    ):
        """Packs a batch.

        Args:
            texts_a: List of strings, or string tensor of shape `(batch,)`.
            texts_b: The second texts of pairs, or `None`.
            sequence_length: Length of the result. `None` (default) pads to
                the longest row. What exceeds it is cut, as at `max_length`.
            is_pair: Boolean tensor `(batch,)`: rows where it is false are
                packed as one text, their second text is not looked at. `None`
                (default): all are pairs, if there are second texts.

        Returns:
            Dict of int32 tensors `(batch, length)`: `token_ids`,
            `padding_mask`, and `segment_ids` where the encoder has segments.
        """
        limit = min(self.max_length, sequence_length or self.max_length)
        rows, first_lengths = self._pack(texts_a, texts_b, limit, is_pair)
        token_ids = rows.to_tensor(
            self.frame.pad, shape=[None, sequence_length]
        )
        positions = tf.range(tf.shape(token_ids)[1])[tf.newaxis]
        mask = positions < tf.cast(rows.row_lengths(), tf.int32)[:, tf.newaxis]
        features = {
            "token_ids": token_ids,
            "padding_mask": tf.cast(mask, tf.int32),
        }
        if self.frame.second_segment is not None:
            second = mask & (positions >= first_lengths[:, tf.newaxis])
            features["segment_ids"] = (
                tf.cast(second, tf.int32) * self.frame.second_segment
            )
        return features

    def tokenize_rows(self, texts_a, texts_b=None):
        """Tokenises a data set, for a cache.

        Args:
            texts_a: List of strings.
            texts_b: The second texts of pairs, or `None`.

        Returns:
            Two lists with an int32 array for each row, as long as the row:
            token ids with special tokens, and segment ids. The second is
            `None` where the encoder has no segments.
        """
        ids, segments = [], []
        for start in range(0, len(texts_a), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows, first_lengths = self._pack(
                texts_a[part],
                None if texts_b is None else texts_b[part],
                self.max_length,
            )
            batch = np.split(rows.values.numpy(), rows.row_splits.numpy()[1:-1])
            ids += batch
            segments += [
                (np.arange(len(row)) >= first).astype(np.int32)
                * np.int32(self.frame.second_segment or 0)
                for row, first in zip(batch, first_lengths.numpy(), strict=True)
            ]
        return ids, segments if self.frame.second_segment is not None else None

    def _pack(self, texts_a, texts_b, limit, is_pair=None):
        """Returns ragged ids, and where the second segment begins in each."""
        frame = self.frame
        if texts_b is None:
            tokens = self._tokenize(texts_a)
            rows = [[frame.start], tokens[:, : limit - 2], [frame.end]]
            first_parts = rows
        else:
            # One call for both: tracing a tokenizer can take seconds.
            tokens = self._tokenize(tf.concat([texts_a, texts_b], 0))
            count = tf.shape(texts_a)[0]
            num_special = 2 + len(frame.separators)
            first, second = tf_text.RoundRobinTrimmer(limit - num_special).trim(
                [tokens[:count], tokens[count:]]
            )
            separators = frame.separators
            if is_pair is not None:
                alone = tokens[:count, : limit - 2]
                first = _choose(is_pair, first, alone)
                second = _choose(is_pair, second, second[:, :0])
                separators = tf.gather(
                    tf.ragged.constant([[], separators], tf.int32),
                    tf.cast(is_pair, tf.int32),
                )
            first_parts = [[frame.start], first, separators]
            rows = [*first_parts, second, [frame.end]]
        rows, first_rows = self._join(rows), self._join(first_parts)
        first_lengths = tf.cast(first_rows.row_lengths(), tf.int32)
        if is_pair is not None:
            # The end of one text alone belongs to the first segment.
            first_lengths += tf.cast(~is_pair, tf.int32)
        return rows, first_lengths

    def _join(self, parts):
        """Joins ragged tokens and, repeated for each row, lists of ids."""
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

    def _tokenize(self, texts):
        # A NUL ends the string inside TensorFlow's regular expressions.
        texts = tf.strings.regex_replace(texts, r"\x{0}", "")
        if not tf.executing_eagerly():
            return tf.cast(self._in_graph(texts), tf.int32)
        if self._graph_tokenizer is not self.tokenizer:
            return tf.cast(self._graph_tokenizer(texts), tf.int32)
        rows = self.tokenizer([text.decode() for text in texts.numpy()])
        return tf.RaggedTensor.from_row_lengths(
            np.concatenate([np.asarray(row, np.int32) for row in rows]),
            [len(row) for row in rows],
        )

    def _in_graph(self, texts):
        if self._graph_tokenizer is self.tokenizer:
            raise ValueError(
                "This tokenizer runs in Python only, so texts cannot be packed "
                "in a graph. Expected: a KerasHub tokenizer; "
                "`tokenizer.in_graph()` gives one where its vocabulary allows."
            )
        return self.tokenizer(texts)


def _choose(condition, rows, others):
    """Returns ragged rows where `condition` holds, and `others` elsewhere."""
    count = tf.size(condition)
    places = tf.range(count) + tf.where(condition, 0, count)
    return tf.gather(tf.concat([rows, others], 0), places)
