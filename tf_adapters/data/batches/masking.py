"""Which tokens masked language modelling hides, and behind what.

Devlin et al. 2019, section 3.1: of each text 15 % of the tokens are chosen; of
these 80 % become the mask token, 10 % a random one, and 10 % stay. The draw is
a pure function of seed, epoch and step, so that each epoch hides others
(RoBERTa, Liu et al. 2019, section 4.1) and a run that was stopped can go on.
"""

import dataclasses

import tensorflow as tf

from tf_adapters.data.encoded import IGNORED

_MASKED, _MASKED_OR_RANDOM = 0.8, 0.9


def hide(masking, features, counts, max_chosen, draw):
    """Returns features with hidden tokens, and which they were.

    Args:
        masking: `Masking`.
        features: Dict with `token_ids` and `padding_mask`.
        counts: How many tokens of each row are chosen, int32 `(rows,)`. With
            whole words no more than that are, fewer where no word is left that
            fits, and the loss, a sum over those that are, is still divided by
            this number.
        max_chosen: Largest number of chosen tokens of a row, an integer or a
            scalar tensor.
        draw: `Draw` of this batch.

    Returns:
        The features, `token_ids` changed, with `masked_positions`
        `(rows, max_chosen)` int32, and `masked_ids`, the tokens that were
        there, `IGNORED` where a row has fewer; `targets` is the same.
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


def _is_special(ids, masking):
    special = tf.constant(masking.special_ids, ids.dtype)
    return tf.reduce_any(ids[..., tf.newaxis] == special, axis=-1)


def _order(may, scores):
    """Returns the indices that may be chosen by their scores, then the rest."""
    return tf.argsort(tf.where(may, scores, 2.0), axis=1, stable=True)


def _words(masking, ids, may):
    """Returns the number of each token's word in its row."""
    # What follows a special token begins a word, however it is marked.
    after = tf.pad(may[:, :-1], [[0, 0], [1, 0]])
    goes_on = tf.gather(tf.constant(masking.continues), ids) & may & after
    return tf.cumsum(tf.cast(~goes_on, tf.int32), axis=1) - 1


def _whole(words, may, uniform, counts):
    """Returns indices in order, whole words first, and how many of these.

    Words are taken in random order, each one that still fits into what is left
    of the count (google-research/bert, create_pretraining_data.py). Where none
    fits the first is cut, so that a row has a hidden token.
    """
    # All tokens of a word have one draw, and so stay together.
    order = _order(may, tf.gather(uniform, words, batch_dims=1))
    words = tf.gather(words, order, batch_dims=1)
    may = tf.gather(may, order, batch_dims=1)
    fits = _fitting(*_word_sizes(words), may, counts[:, tf.newaxis])
    found = tf.reduce_sum(tf.cast(fits, tf.int32), axis=1)
    again = tf.argsort(tf.where(fits, 0, 1), axis=1, stable=True)
    order = tf.gather(order, again, batch_dims=1)
    return order, tf.where(found > 0, found, counts)


def _word_sizes(words):
    """Returns for each place its word's length, and what of it is to come.

    Args:
        words: Numbers of words, those of a word side by side.
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


def _fitting(lengths, to_come, may, counts):
    """Returns which indices belong to words that are taken one after another.

    Each round takes words up to the first that does not fit, and drops this
    and those after it that are too long for what is left: after a few rounds
    there are none.
    """

    def ends(left):
        return tf.cumsum(tf.cast(left, tf.int32), axis=1) + to_come

    def is_over(left):
        return left & (ends(left) > counts)

    def drop(left):
        over = is_over(left)
        room = tf.where(over, counts + lengths - ends(left), 0)
        room = tf.reduce_max(room, axis=1, keepdims=True)
        return (left & (~over | (lengths <= room)),)

    (left,) = tf.while_loop(
        lambda left: tf.reduce_any(is_over(left)), drop, (may,)
    )
    return left


def _behind(masking, there, kind, which):
    """Returns what stands in place of chosen tokens."""
    random = tf.cast(which * masking.vocabulary_size, there.dtype)
    other = tf.where(kind < _MASKED_OR_RANDOM, random, there)
    return tf.where(kind < _MASKED, masking.mask_id, other)


@dataclasses.dataclass(frozen=True)
class Draw:
    """The random numbers of a batch, of which a replica sees its rows.

    Attributes:
        epoch: Integer scalar.
        number: Place of the batch in the epoch.
        rows: Rows of the whole batch, over all replicas.
        first: Place of this replica's first row in it.
        size: Number of this replica's rows.
    """

    epoch: tf.Tensor
    number: tf.Tensor
    rows: tf.Tensor
    first: tf.Tensor
    size: tf.Tensor

    def uniform(self, seed, length, count):
        """Returns numbers from 0 to 1, `(size, length, count)`."""
        numbers = tf.random.stateless_uniform(
            [self.rows, length, count],
            # The trainer's seeds of dropout have the lower half.
            [(seed % 32768) * 65536 + 32768 + self.epoch, self.number],
        )
        return numbers[self.first : self.first + self.size]


def _placed(ids, positions, values):
    """Returns ids with `values` at `positions`."""
    rows = tf.repeat(tf.range(tf.shape(ids)[0]), tf.shape(positions)[1])
    indices = tf.stack([rows, tf.reshape(positions, [-1])], axis=1)
    return tf.tensor_scatter_nd_update(ids, indices, tf.reshape(values, [-1]))
