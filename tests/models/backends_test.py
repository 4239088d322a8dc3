"""Tests that all backends match docs/backends.md, with equal numbers."""

import functools

import numpy as np
import pytest

from tests.models import backend_run
from tests.models import backends_table

pytestmark = [pytest.mark.integration, pytest.mark.slow]

# Their steps draw noise, which each backend draws in its own way.
NOISY = ("full_mixout", "diff_pruning")
NOISY += ("adapter_bias_l0_shared", "fusion_subset")


@functools.cache
def _run(column):
    if not backends_table.is_installed(column):
        pytest.skip(f"{column} is not installed.")
    return backends_table.run(column)


@pytest.mark.parametrize("column", backends_table.COLUMNS)
def test_the_documents_table_is_what_happens(column):
    found, _ = _run(column)
    documented = backends_table.read_table()[column]
    assert backends_table.cells(found) == documented, found


@pytest.mark.parametrize("column", list(backends_table.COLUMNS)[1:])
def test_outputs_and_trained_weights_equal_tensorflows(column):
    _, expected = _run("TensorFlow")
    _, received = _run(column)
    for name, array in received.items():
        method, feature = name.split("/")
        if feature == "fit" and method in NOISY:
            continue
        np.testing.assert_allclose(
            array, expected[name], atol=2e-5, rtol=2e-5, err_msg=name
        )
    assert len(received) == 2 * len(backend_run.METHODS)
