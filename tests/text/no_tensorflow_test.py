"""Tests a text model without TensorFlow installed."""

import os
from pathlib import Path
import subprocess
import sys

import pytest

from tests.fixtures import huggingface_folders

pytestmark = pytest.mark.integration
pytest.importorskip("jax")

_PROGRAM = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ImportError(f"{name} is refused")

sys.meta_path.insert(0, Refuse())
import tf_adapters

model = tf_adapters.TextModel.from_preset(
    sys.argv[1], labels=("no", "yes"), learning_rate=1e-2, method="full"
)
texts, labels = ["a fine film", "a dull one"] * 4, ["yes", "no"] * 4
model.fit(texts, labels, epochs=20, verbose=0)
print([answer["label"] for answer in model.answer(texts[:2])])
(one,) = model.explain(texts[:1])
print(one.answers, bool(abs(one.gradient).max() > 1e-3))
model.save_adapter("adapter")
print(tf_adapters.load("adapter").answer(texts) == model.answer(texts))
model.save("model.keras")
print(tf_adapters.load("model.keras").answer(texts) == model.answer(texts))
print("tensorflow" in sys.modules)
"""


def test_texts_are_learned_on_jax(tmp_path):
    root = Path(__file__).parents[2]
    environment = {
        **os.environ,
        "KERAS_BACKEND": "jax",
        "PYTHONPATH": str(root),
    }
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, huggingface_folders.folder("bert")],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    lines = ["['yes', 'no']", "('yes',) True", "True", "True", "False"]
    assert done.stdout.splitlines() == lines, done.stderr
