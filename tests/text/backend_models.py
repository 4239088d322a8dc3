"""Text models that are trained, saved and loaded on the backend of a process.

python -m tests.text.backend_models <own folder> <folder of another backend>
"""

import os
from pathlib import Path
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np

from tests.fixtures import huggingface_folders
import tf_adapters

TEXTS = ["a fine film", "a dull one", "no", "the film is not a dull one"] * 2
CLASSES = ("negative", "positive")
_CLASSIFICATION = tf_adapters.heads.Classification(CLASSES, dropout_rate=0.0)
_NAMES = ["positive", "negative", "negative", "positive"] * 2
# Name: method, encoder, head, labels. Dropout is off: backends draw other
# masks.
MODELS = {
    "houlsby": ("houlsby", "bert", _CLASSIFICATION, _NAMES),
    "lora": (
        *("lora", "roberta_classifier"),
        tf_adapters.heads.Regression(dropout_rate=0.0),
        [0.0, 1.0, 2.0, 3.0] * 2,
    ),
}


def train_and_save(folder):
    """Trains all models and saves each as an adapter and as a `.keras` file.

    Returns:
        Dict from name to the outputs for `TEXTS`.
    """
    outputs = {}
    for name, (method, encoder, head, labels) in MODELS.items():
        model = tf_adapters.TextModel.from_preset(
            str(huggingface_folders.folder(encoder)),
            method=method,
            head=head,
            learning_rate=1e-3,
            use_encoder_dropout=False,
        )
        before = _outputs(model)
        model.fit(TEXTS, labels, batch_size=4, epochs=2, verbose=0)
        outputs[f"{name}/start"], outputs[name] = before, _outputs(model)
        model.save_adapter(Path(folder) / name)
        model.save(Path(folder) / f"{name}.keras")
    return outputs


def load_and_train(folder):
    """Loads what `train_and_save` saved in a folder, maybe on another backend.

    Returns:
        Dict of outputs for `TEXTS`: of each adapter, of each `.keras` file, and
        after two more steps with the optimizer in the file.
    """
    outputs = {}
    for name, (*_, labels) in MODELS.items():
        adapter = tf_adapters.load(Path(folder) / name)
        outputs[f"{name}/adapter"] = _outputs(adapter)
        model = tf_adapters.load(Path(folder) / f"{name}.keras")
        outputs[f"{name}/keras"] = _outputs(model)
        model.fit(TEXTS, labels, batch_size=4, verbose=0)
        outputs[f"{name}/trained on"] = _outputs(model)
    return outputs


def _outputs(model):
    return model.predict(TEXTS, verbose=0)


if __name__ == "__main__":
    own, other = sys.argv[1:]
    np.savez(
        Path(own) / "outputs.npz",
        **train_and_save(own),
        **load_and_train(other),
    )
