"""Tests that methods refuse numbers that are out of range."""

import pytest

from tf_adapters import methods
from tf_adapters.common.errors import UserError


@pytest.mark.parametrize("rate", [10, 1.0, -0.5])
@pytest.mark.parametrize(
    ("method", "name"),
    [
        (methods.PrefixTuning, "dropout"),
        (methods.BottleneckForms, "dropout"),
        (methods.LoRA, "dropout"),
        (methods.ProjectedAttention, "attention_dropout"),
    ],
)
def test_a_dropout_rate_is_a_share(method, name, rate):
    with pytest.raises(UserError, match=f"at least 0 and below 1.*{rate}"):
        method(**{name: rate})
    method(**{name: 0.0})


@pytest.mark.parametrize(
    ("method", "name"),
    [
        (methods.AdapterBias, "l0_lambda"),
        (methods.DiffPruning, "l0_lambda"),
        (methods.PromptTuning, "init_range"),
        (methods.Fusion, "value_pull"),
    ],
)
def test_a_weight_or_range_is_not_negative(method, name):
    with pytest.raises(UserError, match=f"`{name}` must not be negative"):
        method(**{name: -1.0})
