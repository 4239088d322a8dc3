"""Bottlenecks' configurations mean the methods that answer as the library."""

import dataclasses

import pytest

from tests.methods import peers_parity_test
from tf_adapters.interop import adapterhub_config

WIDTH = 32
# Configurations of `tests/fixtures/make_methods_fixtures.py`.
FORMS = {
    "adapter_plus": {
        **{"original_ln_after": False, "residual_before_ln": False},
        **{"scaling": "channel", "non_linearity": "gelu"},
    },
    "form_before_sum": {
        "original_ln_after": False,
        "residual_before_ln": "post_add",
    },
    "form_before_read": {
        "original_ln_after": False,
        "residual_before_ln": False,
    },
    "form_after": {"original_ln_before": False},
    "form_none": {"original_ln_before": False, "original_ln_after": False},
    "form_both_sum": {"residual_before_ln": "post_add", "mh_adapter": True},
    "form_both_read": {"residual_before_ln": False, "ln_before": True},
    "form_new_both": {
        **{"ln_before": True, "ln_after": True},
        **{"mh_adapter": True, "output_adapter": False},
    },
    "form_new_after_of_sum": {
        "ln_after": True,
        "adapter_residual_before_ln": True,
    },
    "form_channel": {"scaling": "channel"},
    "parallel": {
        **{"is_parallel": True, "scaling": 4.0},
        "original_ln_before": False,
    },
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_and_written(name):
    config = {"original_ln_before": True, "reduction_factor": 4, **FORMS[name]}
    method = adapterhub_config.read_method(config, WIDTH, (1, 3, 0))
    expected = dataclasses.replace(
        peers_parity_test.CASES[name], units=WIDTH // 4, reduction_factor=None
    )
    assert method == expected
    written = adapterhub_config.write_method(method, WIDTH)
    assert {key: written[key] for key in config} == config
