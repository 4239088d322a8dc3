"""Tests that workers with other versions, settings or data are refused."""

import json

import pytest

from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.runs import cluster_check
from tf_adapters.training import workers

SETTINGS = {
    "task": "demo_sentiment",
    "method": "houlsby",
    "encoder": "/here/encoder",
    "init_adapter": "/here/a/adapter",
}


def _check(monkeypatch, changes, data="1f", versions=None):
    """Compares this worker with one that has other settings."""
    ours, theirs = (
        resolve.resolve_config(SETTINGS, layer) for layer in ({}, changes)
    )
    other = {
        **cluster_check._facts(theirs, {"train": data}),
        **(versions or {}),
    }

    def gather(strategy, content):
        return [content, content, json.dumps(other).encode()]

    monkeypatch.setattr(workers, "gather_bytes", gather)
    cluster_check.check_workers_agree(None, ours, {"train": "1f"})


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        (
            {"train": {"epochs": 9}},
            {},
            "`train.epochs`: 3 on worker 0, 9 on worker 2",
        ),
        ({"method": {"name": "houlsby", "units": 8}}, {}, "`method.units`"),
        (
            {"encoder": "/there/another"},
            {},
            "'encoder' on worker 0, 'another' on",
        ),
        ({}, {"data": "2e"}, "differ in the data"),
        (
            {},
            {"versions": {"the version of keras": "3.14"}},
            "the version of keras: .*, '3.14' on worker 2",
        ),
    ],
)
def test_a_difference_is_named(monkeypatch, changes, options, message):
    with pytest.raises(ConfigError, match=message):
        _check(monkeypatch, changes, **options)


def test_paths_of_the_same_files_may_differ(monkeypatch):
    _check(
        monkeypatch,
        {
            "encoder": "/there/encoder",
            "init_adapter": "/elsewhere/adapter",
            "data": {"data_dir": "/there/data"},
            "train": {"deterministic": True},
        },
    )
