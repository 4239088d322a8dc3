"""Tests that a layer of a bank is computed for the examples that use it."""

import keras
import numpy as np
import pytest

from tf_adapters.layers.banks import users
from tf_adapters.layers.banks.projections import BankLowRank
from tf_adapters.layers.context import Context


def low_rank(rows):
    """Returns the outputs for texts that use these rows; unused ones are NaN.

    All weights of row 1 are 1, and all inputs of texts that use a row are 1.
    """
    part = BankLowRank.part(
        {"down_kernel": np.ones((4, 8)), "up_kernel": np.ones((8, 2))}
    )
    layer = part.kind.make_layer(num_rows=2, column=0, name="low_rank")
    layer.write(1, part.arrays)
    rows = np.array(rows)[:, None]
    x = np.where(rows[:, None] > 0, 1.0, np.nan) * np.ones((len(rows), 3, 4))
    y = np.zeros((len(rows), 3, 2), "float32")
    context = Context(np.ones((len(rows), 3)), adapter_rows=rows)
    output = users.add_layer(
        *(keras.ops.convert_to_tensor(y), layer),
        *(keras.ops.cast(x, "float32"), context),
    )
    return np.asarray(output)[:, 0, 0]


@pytest.fixture(autouse=True)
def with_tensorflow_on_a_cpu():
    if not users._can_select():
        pytest.skip("Other devices compute a layer for all examples.")


def test_few_users_are_computed_alone():
    np.testing.assert_array_equal(low_rank([0, 1, 0, 0]), [0, 32, 0, 0])


@pytest.mark.parametrize("rows", [[1, 1, 0], [0, 1]])
def test_many_users_are_computed_with_all_others(rows):
    output = low_rank(rows)
    np.testing.assert_array_equal(np.isnan(output), np.array(rows) == 0)
    assert set(output[np.array(rows) == 1]) == {32}


def test_no_users():
    np.testing.assert_array_equal(low_rank([0, 0, 0]), [0, 0, 0])


def test_all_are_computed_for_other_formats():
    with users.for_all_examples():
        output = low_rank([0, 1, 0, 0])
    np.testing.assert_array_equal(np.isnan(output), [True, False, True, True])
