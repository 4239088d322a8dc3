"""Tests saving, loading and exporting of methods with every kind of output."""

import numpy as np
import pytest
import tensorflow as tf

from tests.export import conftest
from tests.export import head_models
from tests.methods import cases
from tf_adapters.export import saved_model
from tf_adapters.export import signatures
from tf_adapters.models import saving

pytestmark = pytest.mark.slow
# Each kind of output with two methods, each method with two kinds.
METHODS = ("full_mixout", "adapter_bias_l0", "lora", "diff_pruning")
PAIRS = [
    (METHODS[(i + shift) % len(METHODS)], kind)
    for i, kind in enumerate(head_models.TASKS)
    for shift in (0, 1)
]


@pytest.mark.parametrize(("name", "kind"), PAIRS)
def test_the_export_of_a_loaded_adapter_answers_as_the_model(
    name, kind, tmp_path
):
    task, packer = head_models.TASKS[kind], conftest.make_packer("bert")
    model = head_models.make_model(cases.CASES[name][0], task)
    what = signatures.signatures_of_head(model.head)
    function = what.token_function(model, packer)
    _, request = what.warmup_inputs(packer, task.text_fields)
    names = [x.name for x in function.structured_input_signature[0]]
    features = {name: tf.constant(request[name]) for name in names}
    expected = {k: v.numpy() for k, v in function(**features).items()}
    assert max(np.ptp(value) for value in expected.values()) > 0.1
    saving.save_adapter(model, tmp_path / "adapter")
    loaded = saving.load_adapter(tmp_path / "adapter", head_models.bert())
    folder = saved_model.export_model(
        loaded, packer, tmp_path / "model", task.text_fields
    )
    # The following must not use variables that are still in memory.
    for variable in (*model.variables, *loaded.variables):
        variable.assign(tf.zeros_like(variable))
    exported = tf.saved_model.load(str(folder))
    received = exported.signatures["token_ids"](**features)
    assert received.keys() == expected.keys()
    for key, value in expected.items():
        np.testing.assert_allclose(received[key], value, atol=1e-5)
