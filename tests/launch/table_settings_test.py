"""Tests how arguments of `tf_adapters.train` become settings."""

import pytest

from tf_adapters import methods
from tf_adapters.common.errors import ConfigError
from tf_adapters.launch import table_settings


def _layers(settings, method="pfeiffer", **arguments):
    arguments = {"encoder": "minilm", "seed": 0, **arguments}
    return table_settings.layers_of_arguments(settings, method, **arguments)


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ({"seed": 3}, {}, "sets `seed` to 3, but the argument `seed` sets it"),
        ({"encoder": "x"}, {}, "argument `encoder` sets it to 'minilm'"),
        ({"method": "lora"}, {}, "`method.name` to 'lora', .* `method` sets"),
        ({"method": {"name": "lora"}}, {}, "`method.name` to 'lora'"),
        ({"data.text": ["a"]}, {"text": ("b",)}, "`data.text` to .*`text`"),
        ({"data": {"label": "y"}}, {"label": "z"}, "`data.label` to 'y'"),
        ({"train.epochs": 2}, {"epochs": 3}, "`train.epochs` to 2, .*`epochs`"),
        (
            {"method.rank": 4},
            {"method": methods.LoRA()},
            "`method.rank` to 4, but the argument `method` sets it to 8",
        ),
    ],
)
def test_an_argument_does_not_override_a_setting_in_silence(
    settings, options, message
):
    with pytest.raises(ConfigError, match=message):
        _layers(settings, **options)


def test_settings_that_agree_with_arguments_are_taken():
    settings = {"seed": 0, "method": {"name": "lora", "leave_out": [1]}}
    assert _layers(settings, "lora", epochs=None)[0]["seed"] == 0
    _layers(settings, methods.LoRA(leave_out=(1,)))
    _layers({"method.rank": 4}, "lora")
    _layers({"data": {"text": ["a"]}}, text=("a",))
    _layers({"data.text": "a", "data.label": 3}, text=("a",), label="3")
