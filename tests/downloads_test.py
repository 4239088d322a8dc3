"""What a user without a network reads, and how soon."""

import socket
import threading
import time

import pytest

from tf_adapters import downloads
from tf_adapters import encoders


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
        encoders.load_encoder(name)
    assert time.monotonic() - start < 8


def test_a_name_server_that_never_answers(monkeypatch):
    release = threading.Event()

    def wait(*unused):
        release.wait()
        raise OSError("no network")

    monkeypatch.setattr(downloads, "_SECONDS", 0.2)
    monkeypatch.setattr(socket, "create_connection", wait)
    start = time.monotonic()
    assert not downloads._answers("https://example.com")
    assert time.monotonic() - start < 3
    release.set()


def test_a_cached_preset_needs_no_network(no_network, tmp_path):
    cached = tmp_path / "models/keras/bert/keras/bert_tiny_en_uncased/3"
    cached.mkdir(parents=True)
    (cached / "config.json").write_text("{}")
    downloads.check_preset(
        "x", "kaggle://keras/bert/keras/bert_tiny_en_uncased/3"
    )


def test_answers_tries_the_proxy_where_there_is_one(monkeypatch):
    tried = []

    class Connection:
        def close(self):
            pass

    def connect(address, seconds):
        tried.append(address)
        return Connection()

    monkeypatch.setattr(socket, "create_connection", connect)
    for name in ("no_proxy", "NO_PROXY", "https_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert downloads._answers("https://example.com")
    monkeypatch.setenv("https_proxy", "http://proxy.example.com:3128")
    assert downloads._answers("https://example.com")
    assert tried == [("example.com", 443), ("proxy.example.com", 3128)]
