"""Tests that configurations of bottlenecks are read as the right methods.

`tests/methods/peers_parity_test.py` compares the outputs of these methods with
the library's, for the same configurations.
"""

import pytest

from tf_adapters import methods
from tf_adapters.interop.adapterhub import configurations

WIDTH = 32
# By name in `tests/fixtures/make_methods_fixtures.py`: what the configuration
# says, and the method's options.
FORMS = {
    "adapter_plus": (
        {
            "original_ln_after": False,
            "residual_before_ln": False,
            "scaling": "channel",
            "non_linearity": "gelu",
        },
        {
            "pretrained_norm": "before",
            "residual": "read",
            "learned_scaling": "channel",
            "activation": "gelu",
        },
    ),
    "before_sum": (
        {"original_ln_after": False, "residual_before_ln": "post_add"},
        {"pretrained_norm": "before", "residual": "sum"},
    ),
    "before_read": (
        {"original_ln_after": False, "residual_before_ln": False},
        {"pretrained_norm": "before", "residual": "read"},
    ),
    "after": ({"original_ln_before": False}, {"pretrained_norm": "after"}),
    "none": (
        {"original_ln_before": False, "original_ln_after": False},
        {"pretrained_norm": "none"},
    ),
    "both_sum": (
        {"residual_before_ln": "post_add", "mh_adapter": True},
        {"position": "both", "residual": "sum"},
    ),
    "both_read": (
        {"residual_before_ln": False, "ln_before": True},
        {"residual": "read", "new_norm": "before"},
    ),
    "new_both": (
        {
            "ln_before": True,
            "ln_after": True,
            "mh_adapter": True,
            "output_adapter": False,
        },
        {"position": "bottom", "new_norm": "both"},
    ),
    "new_after_of_sum": (
        {"ln_after": True, "adapter_residual_before_ln": True},
        {"new_norm": "after", "residual_in_new_norm": True},
    ),
    "channel": ({"scaling": "channel"}, {"learned_scaling": "channel"}),
    "parallel": (
        {"is_parallel": True, "scaling": 4.0, "original_ln_before": False},
        {
            "parallel": True,
            "scaling": 4.0,
            "pretrained_norm": "after",
            "initialization": "zero_up",
        },
    ),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_form_is_read_and_written(name):
    changes, options = FORMS[name]
    config = {"original_ln_before": True, "reduction_factor": 4, **changes}
    method = configurations.read_method(config, WIDTH, (1, 3, 0))
    assert method == methods.BottleneckForms(
        units=WIDTH // 4, reduction_factor=None, **options
    )
    written = configurations.write_method(method, WIDTH)
    assert {key: written[key] for key in config} == config
