"""Reads the masked language modeling head of a KerasHub preset, if any.

`save_to_preset` of a `keras_hub.models.MaskedLM` writes its head next to the
backbone. If there is no head, KerasHub's `from_preset` silently creates a new
one, and it has no public function to check for a head.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import keras_hub
from keras_hub.src.utils import preset_utils

from tf_adapters.common.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np


# Pairs of the path of KerasHub's variable and its name in `MaskedLMLayer`.
_NAMES = (
    ("intermediate_dense/kernel", "kernel"),
    ("intermediate_dense/bias", "bias"),
    ("intermediate_layer_norm/gamma", "gamma"),
    ("intermediate_layer_norm/beta", "beta"),
    ("output_bias", "output_bias"),
)


def read_preset_head(source: str | Path) -> dict[str, np.ndarray] | None:
    """Returns the weights of a preset's masked language modeling head.

    Args:
        source: Preset, handle or folder, as `find_encoder` returns it.

    Returns:
        Dict from the name of a variable of `MaskedLMLayer` to an array, or
        `None` if the preset has no such head.

    Raises:
        UserError: If Kaggle must be asked for the head and does not answer.
    """
    source = str(source)
    for file in (preset_utils.TASK_CONFIG_FILE, preset_utils.TASK_WEIGHTS_FILE):
        if not _exists(source, file):
            return None
    config = preset_utils.load_json(source, preset_utils.TASK_CONFIG_FILE)
    cls = preset_utils.check_config_class(config)
    if not issubclass(cls, keras_hub.models.MaskedLM):
        return None
    # The preprocessor is not needed, and its vocabulary may be missing.
    task = cls.from_preset(source, preprocessor=None)
    weights = {v.path: v for v in task.get_layer("mlm_head").weights}
    return {ours: weights[f"mlm_head/{k}"].numpy() for k, ours in _NAMES}


def _exists(source: str, file: str) -> bool:
    """Returns whether a preset has a file, and downloads it."""
    try:
        return preset_utils.check_file_exists(source, file)
    # One of the package `requests`, if there is no network.
    except OSError as error:
        raise UserError(
            f"Whether the preset `{source}` has a head for masked tokens is "
            "not known on this machine, and Kaggle does not answer. Try again "
            "with a network."
        ) from error
