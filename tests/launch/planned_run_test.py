"""Tests which settings make two runs different runs."""

from tf_adapters.config import resolve
from tf_adapters.launch import planned_run


def _settings(**changes):
    config = resolve.resolve_config(
        {"task": "demo_sentiment", "method": "houlsby"}, changes
    )
    return resolve.to_dict(config)


def test_a_run_is_the_same_on_another_device_and_with_moved_data():
    run = planned_run.identity(_settings())
    for same in (
        {"tpu": "node-1"},
        {"data": {"data_dir": "/moved"}},
        {"train": {"deterministic": True, "jit_compile": True}},
    ):
        assert planned_run.identity(_settings(**same)) == run
    for other in ({"seed": 1}, {"train": {"epochs": 9}}):
        assert planned_run.identity(_settings(**other)) != run
