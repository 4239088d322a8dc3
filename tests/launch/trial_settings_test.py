"""Tests the settings that a search chooses, and those that it keeps."""

import pytest

from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.launch import table_search
from tf_adapters.launch import table_settings
from tf_adapters.launch import trial_settings
from tf_adapters.text import defaults

DATA = {"data": {"file": "x.csv"}}


class _Trial:
    """Chooses the last value of a list, and the middle of a range."""

    def suggest_categorical(self, name, choices):
        return choices[-1]

    def suggest_float(self, name, low, high, log):
        assert log
        return (low * high) ** 0.5 * 2


def test_method_size_and_rate_are_chosen():
    space = trial_settings.make_space([DATA], ["houlsby", "pfeiffer"])
    layer = space.suggest(_Trial())
    assert layer == {
        "method": {"name": "pfeiffer", "units": 256},
        "train": {"learning_rate": 0.002},
    }
    config = resolve.build_method(space.config(layer))
    assert config.method.units == 256
    assert config.method.reduction_factor is None
    assert config.train.learning_rate == 0.002
    assert config.train.min_steps == 200
    words = "pfeiffer, units 256, learning rate 0.002"
    assert trial_settings.words(layer) == words


@pytest.mark.parametrize(
    ("method", "size"),
    [
        ("pfeiffer", "units"),
        ("houlsby_code", "units"),
        ("compacter", "units"),
        ("lora", "rank"),
        ("prefix_tuning", "prefix_length"),
        ("bitfit", None),
        ("fusion", None),
        ("projected_attention", None),
    ],
)
def test_the_size_of_a_method(method, size):
    space = trial_settings.make_space([DATA], [method])
    assert space.size_of(method) == size
    expected = {"learning_rate_factor": 1.0} | ({size: "usual"} if size else {})
    assert space.usual(method) == expected


def test_what_is_given_is_not_searched():
    given = {"method": {"name": "lora", "rank": 3}, **DATA}
    given["train"] = {"learning_rate": 0.5}
    space = trial_settings.make_space([given])
    layer = space.suggest(_Trial())
    assert layer == {"method": {"name": "lora"}}
    config = space.config(layer)
    assert config.method["rank"] == 3 and config.train.learning_rate == 0.5
    assert space.usual("lora") == {}


def test_a_named_method_is_the_only_one():
    assert trial_settings.make_space([{"method": "lora"}]).methods == ("lora",)
    assert trial_settings.make_space([DATA]).methods == trial_settings.METHODS
    with pytest.raises(ConfigError, match="not both"):
        trial_settings.make_space([{"method": "lora"}], ["lora"])
    with pytest.raises(ConfigError, match="Did you mean `lora`"):
        trial_settings.make_space([DATA], ["loro"])
    with pytest.raises(ConfigError, match=r'such as \["lora"\].*\'lora\''):
        trial_settings.make_space([DATA], "lora")


def test_a_search_has_trials():
    with pytest.raises(ConfigError, match="whole number from 1.*Received: 0"):
        table_search.tune({}, trials=0)


@pytest.mark.parametrize(
    ("settings", "head", "expected"),
    [
        ({}, None, "classification"),
        ({"data.head": "regression"}, None, "regression"),
        ({"data": 5}, "sentence_ranking", "sentence_ranking"),
    ],
)
def test_the_head_of_settings(settings, head, expected):
    layers = table_settings.layers_of_arguments(settings, "lora", head=head)
    assert defaults.head_of(layers) == expected
