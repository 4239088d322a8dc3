"""Tests that text models move between TensorFlow and JAX."""

import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest

from tests.text import backend_models

pytestmark = [pytest.mark.integration, pytest.mark.slow]
pytest.importorskip("jax")


@pytest.fixture(scope="module")
def outputs(tmp_path_factory):
    """Returns the outputs of models trained with TensorFlow, and with JAX.

    Each also has the outputs of the models that the other backend has saved.
    """
    folders = [tmp_path_factory.mktemp(name) for name in ("tensorflow", "jax")]
    by_tensorflow = backend_models.train_and_save(folders[0])
    subprocess.run(
        [
            *(sys.executable, "-m", "tests.text.backend_models"),
            *folders[::-1],
        ],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "KERAS_BACKEND": "jax"},
        check=True,
    )
    by_jax = dict(np.load(folders[1] / "outputs.npz"))
    return by_tensorflow | backend_models.load_and_train(folders[1]), by_jax


@pytest.mark.parametrize("name", backend_models.MODELS)
def test_fit_on_texts_equals_tensorflows(outputs, name):
    by_tensorflow, by_jax = outputs
    change = by_tensorflow[name] - by_tensorflow[f"{name}/start"]
    assert np.abs(change).max() > 1e-3
    np.testing.assert_allclose(by_jax[name], by_tensorflow[name], atol=2e-5)


@pytest.mark.parametrize("form", ["adapter", "keras"])
@pytest.mark.parametrize("name", backend_models.MODELS)
def test_what_one_saves_the_other_loads(outputs, name, form):
    for writer, reader in (outputs, outputs[::-1]):
        loaded = reader[f"{name}/{form}"]
        np.testing.assert_allclose(loaded, writer[name], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", backend_models.MODELS)
def test_training_resumes_with_the_same_optimizer(outputs, name):
    by_tensorflow, by_jax = (one[f"{name}/trained on"] for one in outputs)
    np.testing.assert_allclose(by_jax, by_tensorflow, rtol=0, atol=1e-4)
