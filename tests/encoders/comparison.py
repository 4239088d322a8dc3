"""What tests of several families of encoders do."""

import json

import numpy as np

from tests.fixtures import huggingface_folders
from tf_adapters.models.adapted_encoder import AdaptedEncoder


def check_longest(encoder, name, tolerance=2e-5):
    """Compares the last output for texts of all positions with PyTorch's."""
    features, expected = huggingface_folders.expected(f"{name}_long")
    output = AdaptedEncoder(encoder)(features)["sequence_output"]
    tokens = features["padding_mask"] == 1
    difference = np.abs(np.asarray(output) - expected["hidden_states"][0])
    assert difference[tokens].max() < tolerance


def change_config(folder, **changes):
    """Sets keys of a folder's `config.json`."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
