"""Tests that addresses in a folder are not downloaded without request."""

import json
import shutil

import numpy as np
import pytest

from tests import commands
from tests.interop import folders
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.encoders.load import load_encoder
from tf_adapters.interop import hub
from tf_adapters.runs import hub_members

ADDRESSES = ["hf://me/one", "hf://you/two@v1"]
PFEIFFER = folders.FIXTURES / "adapterhub" / "bert_pfeiffer"


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(commands.ENCODER_OF_TWO_BLOCKS, with_tokenizer=False)[0]


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Stands for the Hub and its cache; says what was downloaded.

    The folders in `cached` are there; those that are asked for come to it.
    """
    cached, downloads = {}, []
    for number, address in enumerate(ADDRESSES):
        shutil.copytree(PFEIFFER, tmp_path / f"snapshot_{number}")
        cached[address] = tmp_path / f"snapshot_{number}"
    on_hub = dict(cached)

    def pull(address):
        if address not in cached:
            downloads.append(address)
            cached[address] = on_hub[address]
        return cached[address]

    monkeypatch.setattr(hub, "pull", pull)
    monkeypatch.setattr(hub, "find_cached", cached.get)
    return cached, downloads


@pytest.fixture(params=["fusion", "stack"])
def saved(request, encoder, cache, tmp_path):
    """An adapter that depends on addresses, in a folder."""
    head = heads.Regression(reads="first_token")
    if request.param == "fusion":
        model = tf_adapters.fuse(encoder, head=head, adapters=ADDRESSES)
    else:
        stack = tf_adapters.Stack(*ADDRESSES, methods.Pfeiffer(units=2))
        model = tf_adapters.compose(encoder, stack, head)
    tf_adapters.save_adapter(model, tmp_path / "saved")
    return tmp_path / "saved"


def _members(folder):
    config = json.loads((folder / "adapter_config.json").read_text())
    return config["members"]


def test_the_addresses_are_saved_and_not_where_the_cache_is(saved, cache):
    assert [member["folder"] for member in _members(saved)] == ADDRESSES
    assert "snapshot_" not in (saved / "adapter_config.json").read_text()


def test_members_in_the_cache_are_read_and_saved_again(
    saved, encoder, cache, tmp_path
):
    model = tf_adapters.load_adapter(saved, encoder)
    assert cache[1] == []
    tf_adapters.save_adapter(model, tmp_path / "again")
    assert _members(tmp_path / "again") == _members(saved)


def test_members_that_are_not_here_are_named_and_not_downloaded(
    saved, encoder, cache
):
    cached, downloads = cache
    cached.clear()
    with pytest.raises(AdapterError) as raised:
        tf_adapters.load_adapter(saved, encoder)
    assert downloads == []
    sentence = str(raised.value)
    assert "depends on hf://me/one, hf://you/two@v1, which" in sentence
    assert f"adapters={ADDRESSES}" in sentence
    assert f"--adapters={','.join(ADDRESSES)}" in sentence


def test_members_that_the_user_names_are_downloaded(saved, encoder, cache):
    inputs = {
        "token_ids": np.array([[7, 9, 11]]),
        "padding_mask": np.ones((1, 3), "int32"),
        "segment_ids": np.zeros((1, 3), "int32"),
    }
    before = tf_adapters.load_adapter(saved, encoder)(inputs)
    cached, downloads = cache
    cached.clear()
    model = tf_adapters.load_adapter(saved, encoder, adapters=ADDRESSES)
    assert downloads == ADDRESSES
    np.testing.assert_array_equal(model(inputs), before)


def test_one_that_is_missing_is_named_with_all_that_are_to_be_given(
    saved, encoder, cache
):
    cached, downloads = cache
    del cached[ADDRESSES[1]]
    with pytest.raises(AdapterError, match="depends on hf://you/two@v1, which"):
        tf_adapters.load_adapter(saved, encoder)
    assert downloads == []


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        (
            {"method": {"name": "fusion", "adapters": ADDRESSES}},
            "--adapters=hf://me/one,hf://you/two@v1",
        ),
        ({"stack_on": ADDRESSES[0]}, "--stack_on=hf://me/one"),
        (
            {
                "stack_on": ADDRESSES[0],
                "language_adapters": {"de": ADDRESSES[1]},
            },
            "--stack_on=hf://me/one "
            "--params_override=language_adapters.de=hf://you/two@v1",
        ),
    ],
)
def test_a_run_downloads_nothing_that_its_user_does_not_name(
    settings, allowed, cache
):
    cached, downloads = cache
    config = resolve.resolve_config({"task": "demo_sentiment", **settings})
    hub_members.check_are_here(config)
    cached.clear()
    with pytest.raises(ConfigError) as raised:
        hub_members.check_are_here(config)
    assert str(raised.value).endswith(f"in the command: {allowed}")
    assert downloads == []
    hub_members.fetch_named([{"data": {}}, settings])
    assert set(downloads) == {a for a in ADDRESSES if a in allowed}
    hub_members.check_are_here(config)
