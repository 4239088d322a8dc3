"""Tests that low-resource splits are seeded, disjoint and of the right size."""

import pytest

from tf_adapters.data.rows import sampling

ROWS = [{"text": f"row {i}", "label": i % 2} for i in range(300)]
VALIDATION = [{"text": f"dev {i}", "label": 0} for i in range(20)]


def _texts(rows):
    return [row["text"] for row in rows]


def _split(seed, num_train=100):
    return sampling.low_resource_split(
        ROWS, VALIDATION, num_train, seed, num_validation=50
    )


def test_at_most_draws_and_keeps_all_where_no_number_is_given():
    assert sampling.at_most(ROWS, None) == ROWS
    drawn = sampling.at_most(ROWS, 50)
    assert drawn == sampling.subsample(ROWS, 50, seed=0) != ROWS[:50]


def test_a_tenth_of_each_class_is_held_out():
    rows = [{"text": str(i), "label": int(i > 99)} for i in range(120)]
    rows += [{"text": "one", "label": 2}]
    rows += [{"text": "two", "label": 3}, {"text": "three", "label": 3}]
    kept, held_out = sampling.hold_out_of_each_class(rows, seed=1)
    assert sorted(row["label"] for row in held_out) == [0] * 10 + [1] * 2 + [3]
    assert sorted(_texts(kept + held_out)) == sorted(_texts(rows))
    again = sampling.hold_out_of_each_class(rows, seed=1)
    assert again == (kept, held_out)
    assert sampling.hold_out_of_each_class(rows, seed=2) != again


def test_low_resource_split_is_the_papers():
    """He et al. 2021, section 3.2."""
    train, validation, test = _split(seed=0)
    assert (len(train), len(validation)) == (100, 50)
    assert test == VALIDATION
    drawn = _texts(train) + _texts(validation)
    assert len(set(drawn)) == 150
    assert set(drawn) <= set(_texts(ROWS))


def test_low_resource_split_depends_on_the_seed_alone():
    assert _split(seed=3) == _split(seed=3)
    assert set(_texts(_split(3)[0])) != set(_texts(_split(4)[0]))
    assert set(_texts(_split(3)[1])) != set(_texts(_split(4)[1]))


def test_validation_is_a_thousand_rows_by_default():
    rows = [{"text": str(i)} for i in range(1200)]
    train, validation, _ = sampling.low_resource_split(rows, [], 200, 0)
    assert (len(train), len(validation)) == (200, 1000)


def test_low_resource_split_says_what_is_too_few():
    with pytest.raises(
        ValueError, match="251 for training and 50 validation.*301.*300 rows"
    ):
        _split(seed=0, num_train=251)
    assert len(_split(seed=0, num_train=250)[0]) == 250


def test_draws_are_spread_over_the_rows():
    train, _, _ = _split(seed=0)
    positions = [int(text.split()[1]) for text in _texts(train)]
    assert positions == sorted(positions)
    assert 120 < sum(positions) / len(positions) < 180


def test_subsample_draws_by_seed_and_keeps_all_where_there_are_no_more():
    assert sampling.subsample(ROWS, 300, 0) == ROWS
    assert sampling.subsample(ROWS, 999, 0) == ROWS
    drawn = sampling.subsample(ROWS, 40, 1)
    assert len(set(_texts(drawn))) == 40
    assert drawn == sampling.subsample(ROWS, 40, 1)
    assert drawn != sampling.subsample(ROWS, 40, 2)
    with pytest.raises(ValueError, match="Received: num_rows=0"):
        sampling.subsample(ROWS, 0, 0)


def test_hold_out_parts_the_rows():
    kept, held_out = sampling.hold_out(ROWS, seed=0)
    assert (len(kept), len(held_out)) == (270, 30)
    assert set(_texts(kept + held_out)) == set(_texts(ROWS))
    with pytest.raises(ValueError, match="too few rows"):
        sampling.hold_out(ROWS[:1], seed=0)


def test_fingerprint_sees_text_label_and_order():
    rows = ROWS[:3]
    same = [dict(reversed(row.items())) for row in rows]
    digest = sampling.fingerprint(rows)
    assert len(digest) == 64
    assert sampling.fingerprint(same) == digest
    changed = [
        rows[:2],
        rows[::-1],
        [{**rows[0], "label": 1}, *rows[1:]],
        [{**rows[0], "text": "row 0 "}, *rows[1:]],
    ]
    assert len({digest, *map(sampling.fingerprint, changed)}) == 5


def test_fingerprint_is_the_same_on_every_machine():
    rows = [{"text": "é", "label": 0.5}]
    assert sampling.fingerprint(rows) == (
        "ac21e955c5e113be4f468629b75795b6fa954caf9ed439ea1fc9ff66ba272bdf"
    )
