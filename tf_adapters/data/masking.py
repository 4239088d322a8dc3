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


def hide(masking, features, counts, most, draw):
    """Returns features with hidden tokens, and which they were.

    Args:
        masking: `Masking`.
        features: Dict with `token_ids` and `padding_mask`.
        counts: How many tokens of each row are chosen, int32 `(rows,)`. With
            whole words no more than that are, and the loss, a sum over those
            that are, is still divided by this number.
        most: Largest number of chosen tokens of a row, an integer or a scalar
            tensor.
        draw: `Draw` of this batch.

    Returns:
        The features, `token_ids` changed, with `masked_positions`
        `(rows, most)` int32, and `masked_ids`, the tokens that were there,
        `IGNORED` where a row has fewer; `targets` is the same.
    """
    ids = features["token_ids"]
    uniform = draw.uniform(masking.seed, tf.shape(ids)[1], 3)
    uniform = tf.ensure_shape(uniform, [*ids.shape, 3])
    may = tf.cast(features["padding_mask"], "bool")
    may &= ~_is_special(ids, masking)
    order, words = _order(masking, ids, may, uniform[..., 0])
    positions = order[:, :most]
    chosen = tf.range(most)[tf.newaxis] < counts[:, tf.newaxis]
    chosen &= tf.gather(may, positions, batch_dims=1)
    if words is not None:
        chosen &= _whole(words, counts, most)
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


def _order(masking, ids, may, uniform):
    """Returns places in random order, and for whole words their numbers."""
    if masking.continues is None:
        scores = tf.where(may, uniform, 2.0)
        return tf.argsort(scores, axis=1, stable=True), None
    begins = ~tf.gather(tf.constant(masking.continues), ids) | ~may
    words = tf.cumsum(tf.cast(begins, tf.int32), axis=1) - 1
    # All tokens of a word have one draw.
    scores = tf.gather(uniform, tf.maximum(words, 0), batch_dims=1)
    order = tf.argsort(tf.where(may, scores, 2.0), axis=1, stable=True)
    return order, tf.gather(words, order, batch_dims=1)


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


def _whole(words, counts, most):
    """Returns which of the first places belong to words that are chosen whole.

    The word that the count would cut is not, unless it is the only one.
    """
    padded = tf.pad(words, [[0, 0], [0, 1]], constant_values=-1)
    cut = tf.gather(padded, counts, batch_dims=1)[:, tf.newaxis]
    first = words[:, :most]
    return (first != cut) | (first == words[:, :1])


def _placed(ids, positions, values):
    """Returns ids with `values` at `positions`."""
    rows = tf.repeat(tf.range(tf.shape(ids)[0]), tf.shape(positions)[1])
    places = tf.stack([rows, tf.reshape(positions, [-1])], axis=1)
    return tf.tensor_scatter_nd_update(ids, places, tf.reshape(values, [-1]))
