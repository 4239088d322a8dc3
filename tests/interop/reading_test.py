"""Tests that folders from `adapters` and PEFT give the same outputs here.

`tests/fixtures/make_interop_fixtures.py` made them.
"""

import re

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tests.interop import folders
import tf_adapters


@pytest.mark.parametrize("case", folders.CASES)
def test_a_folder_answers_as_its_own_library(case):
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, folders.encoder(case)
    )
    output, wanted = folders.answer(model, expected)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)
    # The encoder alone gives other outputs.
    assert np.abs(wanted).max() > 0.1


_LORA_MODULES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
}


def _our_name(theirs):
    """Returns our name of a tensor of an AdapterHub LoRA."""
    _, block, module, part = re.fullmatch(
        r"(\w+)\.encoder\.layer\.(\d+)\.([\w.]+)\.loras\.task\.lora_([AB])",
        theirs,
    ).groups()
    kernel = {"A": "down_kernel", "B": "up_kernel"}[part]
    return f"block_{block}_{_LORA_MODULES[module]}/{kernel}"


@pytest.mark.parametrize("name", ["bert_lora", "bert_lora_all", "roberta_lora"])
def test_gradients_of_a_lora_are_those_of_its_own_library(name):
    case = f"adapterhub/{name}"
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, folders.encoder(case)
    )
    wanted = {
        _our_name(key.removeprefix("gradient/")): gradient.T
        for key, gradient in expected.items()
        if key.startswith("gradient/")
    }
    trained = model.trained_variables()
    assert set(wanted) == {k for k in trained if not k.startswith("head/")}
    with tf.GradientTape() as tape:
        output = folders.output_of(model, folders.inputs(model, expected))
        if model.head is None:
            output *= expected["input/padding_mask"][..., None]
        loss = tf.reduce_sum(output**2) / 2
    values = {key: trained[key].value for key in wanted}
    found = tape.gradient(loss, values)
    largest = max(np.abs(gradient).max() for gradient in wanted.values())
    for key, gradient in wanted.items():
        assert np.abs(gradient).max() > 100 * 1e-5 * largest
        np.testing.assert_allclose(
            found[key], gradient, rtol=1e-4, atol=1e-5 * largest, err_msg=key
        )
