"""Tests the choice of Keras's backend, and the sentences of those who err."""

import importlib.util
import sys

import pytest

from tf_adapters.common import keras_backend
from tf_adapters.common.errors import ConfigError


def test_the_backend_of_imported_keras_stays():
    keras_backend.use_backend("tensorflow")
    with pytest.raises(ConfigError, match="imported with `tensorflow`"):
        keras_backend.use_backend("jax")


@pytest.fixture
def _not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "keras", raising=False)
    monkeypatch.delenv("KERAS_BACKEND", raising=False)


@pytest.mark.usefixtures("_not_imported")
def test_jax_is_set_before_keras_is_imported(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    keras_backend.use_backend("jax")
    assert keras_backend.os.environ["KERAS_BACKEND"] == "jax"


@pytest.mark.usefixtures("_not_imported")
def test_a_backend_that_is_not_installed(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'tf_adapters\[jax\]'"):
        keras_backend.use_backend("jax")


@pytest.mark.usefixtures("_not_imported")
def test_the_environment_names_another_backend(monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")
    with pytest.raises(ConfigError, match="evaluate with --backend=jax"):
        keras_backend.use_backend("tensorflow")
