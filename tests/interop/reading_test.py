"""Folders that `adapters` and PEFT wrote answer here as they did there.

`tests/fixtures/make_interop_fixtures.py` made them.
"""

import numpy as np
import pytest
from safetensors.numpy import load_file

from tests.interop import folders
import tf_adapters


@pytest.mark.parametrize("case", folders.CASES)
def test_a_folder_answers_as_its_own_library(case):
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, folders.encoder(case)
    )
    output, wanted = folders.answer(model, expected)
    np.testing.assert_allclose(output, wanted, rtol=0, atol=1e-5)
    # What the encoder alone answers is something else.
    assert np.abs(wanted).max() > 0.1
