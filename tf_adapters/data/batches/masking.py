"""Masks tokens for masked language modeling.

In each text 15% of the tokens are chosen. Of these 80% become the mask token,
10% a random token, and 10% are unchanged (Devlin et al. 2019, section 3.1).
The choice depends on seed, epoch and step only, so that epochs mask different
tokens (RoBERTa, Liu et al. 2019, section 4.1) and a stopped run can resume.
"""

import dataclasses
from typing import TYPE_CHECKING
from typing import Any

import tensorflow as tf

from tf_adapters.data.examples import IGNORED

if TYPE_CHECKING:
    from tf_adapters.data.examples import Masking


_MASKED, _MASKED_OR_RANDOM = 0.8, 0.9


def hide(
    masking: "Masking",
    features: dict[str, Any],
    counts: Any,
    max_chosen: Any,
    draw: Any,
) -> dict[str, Any]:
    """Masks tokens of a batch and adds the original tokens as targets.

    Args:
        masking: `Masking`.
        features: Dict with `token_ids` and `padding_mask`.
        counts: Number of tokens to choose in each row, int32 `(rows,)`. With
            whole words this is an upper limit: fewer tokens are chosen if no
            remaining word fits. The loss, a sum over the chosen tokens, is
            always divided by this number.
        max_chosen: Largest number of chosen tokens in a row, an integer or a
            scalar tensor.
        draw: `Draw` of this batch.

    Returns:
        The features with masked tokens in `token_ids`, and three more int32
        tensors `(rows, max_chosen)`: `masked_positions`; `masked_ids`, the
        original tokens, padded with `IGNORED`; and `targets`, equal to
        `masked_ids`.
    """
    ids = features["token_ids"]
    uniform = draw.uniform(masking.seed, tf.shape(ids)[1], 3)
    uniform = tf.ensure_shape(uniform, [*ids.shape, 3])
    may = tf.cast(features["padding_mask"], "bool")
    may &= ~_is_special(ids, masking)
    if masking.continues is None:
        order = _order(may, uniform[..., 0])
    else:
        words = _words(masking, ids, may)
        order, counts = _whole(words, may, uniform[..., 0], counts)
    positions = order[:, :max_chosen]
    chosen = tf.range(max_chosen)[tf.newaxis] < counts[:, tf.newaxis]
    chosen &= tf.gather(may, positions, batch_dims=1)
    there = tf.gather(ids, positions, batch_dims=1)
    kind, which = (
        tf.gather(uniform[..., i], positions, batch_dims=1) for i in (1, 2)
    )
    hidden = _behind(masking, there, kind, which)
    masked_ids = tf.where(chosen, there, IGNORED)
    return {
        **features,
        "token_ids": _placed(ids, positions, tf.where(chosen, hidden, there)),
        "masked_positions": positions,
        "masked_ids": masked_ids,
        "targets": masked_ids,
    }


def _is_special(ids: Any, masking: "Masking") -> Any:
    special = tf.constant(masking.special_ids, ids.dtype)
    return tf.reduce_any(ids[..., tf.newaxis] == special, axis=-1)


def _order(may: "tf.Tensor", scores: Any) -> Any:
    """Returns the sorted token indices of each row.

    Tokens that may be masked come first, sorted by score; then all others.
    """
    return tf.argsort(tf.where(may, scores, 2.0), axis=1, stable=True)


def _words(masking: "Masking", ids: Any, may: "tf.Tensor") -> Any:
    """Returns the number of each token's word, counted from 0 in each row."""
    # A token after a special token begins a word, even if marked otherwise.
    after = tf.pad(may[:, :-1], [[0, 0], [1, 0]])
    goes_on = tf.gather(tf.constant(masking.continues), ids) & may & after
    return tf.cumsum(tf.cast(~goes_on, tf.int32), axis=1) - 1


def _whole(
    words: Any, may: "tf.Tensor", uniform: "tf.Tensor", counts: Any
) -> tuple[Any, Any]:
    """Chooses whole words; sorts token indices so that chosen tokens are first.

    Also returns the number of chosen tokens of each row.

    Words are tried in random order. A word is chosen if it fits into the
    remaining count (google-research/bert, create_pretraining_data.py). If no
    word fits, the first word is cut, so that each row has a masked token.
    """
    # All tokens of a word have the same score and stay together.
    order = _order(may, tf.gather(uniform, words, batch_dims=1))
    words = tf.gather(words, order, batch_dims=1)
    may = tf.gather(may, order, batch_dims=1)
    fits = _fitting(*_word_sizes(words), may, counts[:, tf.newaxis])
    found = tf.reduce_sum(tf.cast(fits, tf.int32), axis=1)
    again = tf.argsort(tf.where(fits, 0, 1), axis=1, stable=True)
    order = tf.gather(order, again, batch_dims=1)
    return order, tf.where(found > 0, found, counts)


def _word_sizes(words: Any) -> tuple[Any, Any]:
    """Returns the length of each token's word, and the distance to its end.

    Both are numbers of tokens.

    Args:
        words: Word numbers `(rows, tokens)`. Equal numbers are adjacent.
    """
    rows, length = tf.unstack(tf.shape(words))
    numbers = words + length * tf.range(rows)[:, tf.newaxis]
    indices = tf.broadcast_to(tf.range(length), [rows, length])
    last, first = (
        tf.gather(of_words(indices, numbers, rows * length), numbers)
        for of_words in (
            tf.math.unsorted_segment_max,
            tf.math.unsorted_segment_min,
        )
    )
    return last - first + 1, last - indices


def _fitting(lengths: Any, to_come: Any, may: "tf.Tensor", counts: Any) -> Any:
    """Returns a boolean mask of the tokens of all words that can be chosen.

    Words are tried in order and chosen if they fit into the row's `counts`.
    Each round finds the first word that does not fit, and drops it and all
    later words that are longer than the remaining room. After a few rounds
    all remaining words fit.

    Args:
        lengths: See the first result of `_word_sizes`.
        to_come: See the second result of `_word_sizes`.
        may: Boolean tensor, whether each token may be masked.
        counts: Largest number of tokens to choose in each row.
    """

    def ends(left: Any) -> Any:
        return tf.cumsum(tf.cast(left, tf.int32), axis=1) + to_come

    def is_over(left: Any) -> Any:
        return left & (ends(left) > counts)

    def drop(left: Any) -> tuple[Any]:
        over = is_over(left)
        room = tf.where(over, counts + lengths - ends(left), 0)
        room = tf.reduce_max(room, axis=1, keepdims=True)
        return (left & (~over | (lengths <= room)),)

    (left,) = tf.while_loop(
        lambda left: tf.reduce_any(is_over(left)), drop, (may,)
    )
    return left


def _behind(masking: "Masking", there: Any, kind: Any, which: Any) -> Any:
    """Returns the ids that replace the chosen tokens.

    An id is the mask token, a random token, or the original token in `there`.
    `kind` and `which` are random numbers from 0 to 1: `kind` selects one of
    these three, and `which` selects the random token.
    """
    random = tf.cast(which * masking.vocabulary_size, there.dtype)
    other = tf.where(kind < _MASKED_OR_RANDOM, random, there)
    return tf.where(kind < _MASKED, masking.mask_id, other)


@dataclasses.dataclass(frozen=True)
class Draw:
    """The random numbers for one replica's rows of a batch.

    A replica draws numbers for the whole batch and uses only its own rows.
    Padding a batch with more rows or tokens does not change the numbers.

    Attributes:
        epoch: Integer scalar.
        number: Index of the batch in the epoch.
        rows: Number of rows of the whole batch, over all replicas.
        first: Index of this replica's first row in the batch.
        size: Number of this replica's rows.
        longest: Number of tokens of the longest text in the whole batch.
    """

    epoch: tf.Tensor
    number: tf.Tensor
    rows: tf.Tensor
    first: tf.Tensor
    size: tf.Tensor
    longest: tf.Tensor

    def uniform(self, seed: int, length: Any, count: Any) -> Any:
        """Returns random numbers in [0, 1) for this replica's rows.

        The shape is `(size, length, count)`: `count` numbers for each token.
        After the longest text, where all tokens are padding, they are 0.
        """
        numbers = tf.random.stateless_uniform(
            [self.rows, self.longest, count],
            # The trainer's seeds for dropout use the lower 32,768 values.
            [(seed % 32768) * 65536 + 32768 + self.epoch, self.number],
        )
        numbers = numbers[self.first : self.first + self.size]
        return tf.pad(numbers, [[0, 0], [0, length - self.longest], [0, 0]])


def _placed(ids: Any, positions: Any, values: Any) -> Any:
    """Returns a copy of `ids` with `values` at the `positions` in each row."""
    rows = tf.repeat(tf.range(tf.shape(ids)[0]), tf.shape(positions)[1])
    indices = tf.stack([rows, tf.reshape(positions, [-1])], axis=1)
    return tf.tensor_scatter_nd_update(ids, indices, tf.reshape(values, [-1]))
