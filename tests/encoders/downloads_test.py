"""Tests the errors without a network, and how quickly they come."""

import socket
import time

import pytest

from tf_adapters.encoders import downloads
from tf_adapters.encoders import load


@pytest.fixture
def no_network(monkeypatch, tmp_path):
    def refuse(*unused, **also_unused):
        raise OSError("no network")

    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setenv("KAGGLEHUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("bert_tiny_en_uncased", "api.kaggle.com"),
        ("kaggle://keras/bert/keras/bert_tiny_en_uncased/3", "api.kaggle.com"),
        ("hf://owner-of-nothing/no-such-model", "huggingface.co"),
    ],
)
def test_says_the_ways_out_within_seconds(no_network, name, host):
    start = time.monotonic()
    with pytest.raises(ValueError, match=f"{host} does not answer.*`minilm`"):
        load.load_encoder(name)
    assert time.monotonic() - start < 8


def test_a_cached_preset_needs_no_network(no_network, tmp_path):
    cached = tmp_path / "models/keras/bert/keras/bert_tiny_en_uncased/3"
    cached.mkdir(parents=True)
    (cached / "config.json").write_text("{}")
    downloads.check_preset(
        "x", "kaggle://keras/bert/keras/bert_tiny_en_uncased/3"
    )
