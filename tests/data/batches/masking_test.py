"""Tests which tokens are hidden, their replacements, words and replicas."""

import numpy as np
import pytest
import tensorflow as tf

from tf_adapters.data.batches import batch_plan
from tf_adapters.data.batches import masking
from tf_adapters.data.batches import pipeline
from tf_adapters.data.examples import IGNORED
from tf_adapters.data.examples import Examples
from tf_adapters.data.examples import Masking

MASK, PAD, VOCABULARY = 4, 0, 1000
SPECIAL = (PAD, 2, 3)


def _masking(**options):
    return Masking(MASK, SPECIAL, VOCABULARY, **options)


def _ids(rows, tokens):
    """Returns `[CLS] x ... [SEP]` rows of ordinary tokens, no two alike."""
    inside = np.arange(10, 10 + rows * tokens).reshape(rows, tokens)
    return np.pad(inside, ((0, 0), (1, 1)), constant_values=((0, 0), (2, 3)))


def _hide(ids, counts, epoch=1, number=0, **options):
    """Returns the features as arrays."""
    ids = np.asarray(ids, "int32")
    draw = masking.Draw(epoch, number, len(ids), 0, *ids.shape)
    features = masking.hide(
        _masking(**options),
        {"token_ids": tf.constant(ids), "padding_mask": tf.ones_like(ids)},
        tf.constant(counts, tf.int32),
        max(counts),
        draw,
    )
    return {name: value.numpy() for name, value in features.items()}


def test_as_many_as_asked_and_never_a_special_token():
    ids = _ids(3, 8)
    found = _hide(ids, [1, 4, 8])
    assert (found["masked_ids"] != IGNORED).sum(axis=1).tolist() == [1, 4, 8]
    for row in range(3):
        there = found["masked_ids"][row] != IGNORED
        places = found["masked_positions"][row][there]
        assert len(set(places)) == len(places) and set(places) <= {*range(1, 9)}
        np.testing.assert_array_equal(
            found["masked_ids"][row][there], ids[row][places]
        )
        rest = np.setdiff1d(np.arange(10), places)
        np.testing.assert_array_equal(
            found["token_ids"][row, rest], ids[row, rest]
        )
    np.testing.assert_array_equal(found["targets"], found["masked_ids"])


def test_shares_are_those_of_the_paper():
    """80 % become the mask, 10 % a random token, 10 % stay, at any position."""
    vocabulary = 100_000
    ids = np.full((2000, 22), 7)
    ids[:, 0], ids[:, -1] = 2, 3
    draw = masking.Draw(1, 0, len(ids), 0, *ids.shape)
    found = masking.hide(
        Masking(MASK, SPECIAL, vocabulary),
        {"token_ids": tf.constant(ids, tf.int32), "padding_mask": ids * 0 + 1},
        tf.fill([2000], 3),
        3,
        draw,
    )
    values = tf.gather(
        found["token_ids"], found["masked_positions"], batch_dims=1
    ).numpy()
    # Of 6,000 draws the standard deviation of a share is 0.005 and 0.004.
    assert np.mean(values == MASK) == pytest.approx(0.8, abs=0.02)
    assert np.mean(values == 7) == pytest.approx(0.1, abs=0.016)
    random = values[(values != MASK) & (values != 7)]
    assert random.mean() / vocabulary == pytest.approx(0.5, abs=0.05)
    places = np.bincount(
        found["masked_positions"].numpy().ravel(), minlength=22
    )
    assert places[[0, 21]].sum() == 0 and places[1:21].min() > 230


def test_epochs_and_batches_differ_and_repeat():
    ids, counts = _ids(4, 30), [5] * 4
    first = _hide(ids, counts)
    again = _hide(ids, counts)
    np.testing.assert_array_equal(first["token_ids"], again["token_ids"])
    for other in ({"epoch": 2}, {"number": 1}, {"seed": 1}):
        positions = _hide(ids, counts, **other)["masked_positions"]
        assert (positions != first["masked_positions"]).any()


def test_whole_words_are_hidden_whole_and_no_more_than_asked():
    continues = np.zeros(VOCABULARY, bool)
    # Words of 1, 2, 3, 1, 2, 3 ... tokens.
    lengths = [1, 2, 3, 1, 2, 3]
    starts = np.cumsum([0, *lengths[:-1]])
    flat = np.full((200, 14), 20)
    flat[:, 0], flat[:, -1] = 2, 3
    continues[30] = True
    for place in set(range(12)) - set(starts.tolist()):
        flat[:, 1 + place] = 30
    found = _hide(flat, [4] * 200, continues=continues)
    word_of = np.searchsorted(starts, np.arange(12), side="right") - 1
    numbers = []
    for row in range(200):
        there = found["masked_ids"][row] != IGNORED
        places = found["masked_positions"][row][there] - 1
        words = set(word_of[places])
        whole = {p for p in range(12) if word_of[p] in words}
        assert set(places.tolist()) == whole
        numbers.append(len(places))
    assert max(numbers) <= 4 and min(numbers) >= 1
    assert np.mean(numbers) > 3


def _words(ids):
    """Returns the positions of each word's tokens, computed in a loop."""
    words = []
    for place, token in enumerate(ids):
        special = token in SPECIAL or ids[place - 1] in SPECIAL
        if place and token >= 30 and not special:
            words[-1].append(place)
        else:
            words.append([place])
    return words


def _greedy(words, count):
    """Returns the words that fit, chosen one by one in a loop."""
    chosen = []
    for word in words:
        if len(word) <= count:
            chosen.append(word)
            count -= len(word)
    return chosen


def test_words_that_do_not_fit_are_skipped_and_shorter_ones_taken():
    continues = np.zeros(VOCABULARY, bool)
    continues[30:] = True
    generator = np.random.default_rng(0)
    rows, width = 300, 26
    counts = generator.integers(1, 7, rows).tolist()
    ids = np.full((rows, width), 20)
    # There is also padding between two texts; a word can begin after it.
    ids[:, 1:] = generator.choice([20, 30, 31], (rows, width - 1))
    ids[generator.random((rows, width)) < 0.1] = 3
    ids[:, 0] = 2
    found = _hide(ids, counts, continues=continues)
    draw = masking.Draw(1, 0, rows, 0, rows, width)
    scores = draw.uniform(0, width, 3).numpy()[..., 0]
    skipped = 0
    for row in range(rows):
        there = found["masked_ids"][row] != IGNORED
        places = found["masked_positions"][row][there].tolist()
        words = _words(ids[row])
        # A special token is counted like a word, but never chosen.
        order = np.argsort(scores[row, : len(words)])
        order = [
            words[i] for i in order if ids[row, words[i][0]] not in SPECIAL
        ]
        chosen = _greedy(order, counts[row])
        skipped += chosen != order[: len(chosen)]
        expected = sum(chosen, []) or order[0][: counts[row]]
        assert places == expected
    assert skipped > 50


def test_a_word_longer_than_the_count_is_cut():
    continues = np.zeros(VOCABULARY, bool)
    continues[30] = True
    found = _hide([[2, 20, 30, 30, 30, 3]], [2], continues=continues)
    assert (found["masked_ids"] != IGNORED).sum() == 2


def _examples(rows, **options):
    lists = [row.astype("int32") for row in rows]
    encoded = Examples(
        lists,
        None,
        pad_id=PAD,
        counts=np.array([2] * len(rows), "int32"),
        masking=_masking(**options),
    )
    return pipeline.to_tensors(encoded)


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize("batching", ["grouped", "fixed"])
def test_two_replicas_see_what_one_device_sees(batching, whole_words):
    # Words of one token, two and three.
    continues = np.isin(np.arange(VOCABULARY) % 6, (2, 4, 5))
    options = {"continues": continues} if whole_words else {}
    examples = _examples(_ids(7, 9), **options)
    batches = batch_plan.plan_training(
        examples.lengths, 4, 0, 0, batching, (16,)
    )
    whole = list(pipeline.dataset(examples, batches))
    parts = list(pipeline.dataset(examples, batches, 2, (0, 1)))
    for number, batch in enumerate(whole):
        joined = [
            tf.concat([part[name] for part in parts[2 * number :][:2]], 0)
            for name in ("token_ids", "masked_positions", "masked_ids")
        ]
        np.testing.assert_array_equal(batch["token_ids"], joined[0])
        np.testing.assert_array_equal(batch["masked_positions"], joined[1])
        np.testing.assert_array_equal(batch["masked_ids"], joined[2])
    # A mean over all hidden tokens: two of each of the batch's texts.
    weights = whole[0]["weights"].numpy()
    assert weights.max() == pytest.approx(1 / 8)


def test_padding_does_not_change_what_is_hidden():
    """Compiled steps need few shapes, and must train on the same tokens."""
    examples = _examples([*_ids(3, 9), *_ids(4, 6)])
    plan = batch_plan.plan_training(examples.lengths, 4, 0, 0, "random")
    padded = batch_plan.in_fixed_shapes(plan, 6, (16,))
    tight, wide = (
        list(pipeline.dataset(examples, batches)) for batches in (plan, padded)
    )
    for one, other in zip(tight, wide, strict=True):
        rows, tokens = one["token_ids"].shape
        assert other["token_ids"].shape == (6, 16)
        ids = other["token_ids"][:rows, :tokens]
        np.testing.assert_array_equal(one["token_ids"], ids)
        for name in ("masked_positions", "masked_ids"):
            np.testing.assert_array_equal(one[name], other[name][:rows])


@pytest.mark.parametrize("continues", [None, np.zeros(VOCABULARY, bool)])
def test_a_short_fixed_batch_may_have_fewer_tokens_than_masks_elsewhere(
    continues,
):
    ids = [np.arange(10, 10 + n, dtype="int32") for n in (30, 6)]
    counts = np.array([20, 4], "int32")
    rule = _masking(continues=continues)
    examples = pipeline.to_tensors(
        Examples(ids, None, pad_id=PAD, counts=counts, masking=rule)
    )
    plan = batch_plan.plan_training(examples.lengths, 1, 0, 0, "fixed", (8, 32))
    for batch in plan:
        (found,) = pipeline.dataset(examples, [batch])
        masked = (found["masked_ids"].numpy() != IGNORED).sum()
        assert masked == counts[batch.indices[0]]
