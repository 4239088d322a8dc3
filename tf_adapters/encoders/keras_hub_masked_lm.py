"""The head for masked tokens of a KerasHub preset that carries one.

`save_to_preset` of a `keras_hub.models.MaskedLM` writes its head beside the
backbone. KerasHub's `from_preset` makes a new head where there is none, without
a word, and offers no other way to ask.
"""

import keras_hub
from keras_hub.src.utils import preset_utils

# From the path of KerasHub's variable to the name of ours.
_NAMES = (
    ("intermediate_dense/kernel", "kernel"),
    ("intermediate_dense/bias", "bias"),
    ("intermediate_layer_norm/gamma", "gamma"),
    ("intermediate_layer_norm/beta", "beta"),
    ("output_bias", "output_bias"),
)


def read_preset_head(source):
    """Returns the head's arrays by the names of our variables, or `None`.

    Args:
        source: Preset, handle or folder, from `find_encoder`.
    """
    source = str(source)
    for file in (preset_utils.TASK_CONFIG_FILE, preset_utils.TASK_WEIGHTS_FILE):
        if not preset_utils.check_file_exists(source, file):
            return None
    config = preset_utils.load_json(source, preset_utils.TASK_CONFIG_FILE)
    cls = preset_utils.check_config_class(config)
    if not issubclass(cls, keras_hub.models.MaskedLM):
        return None
    # What packs texts is not needed, and may lack its vocabulary.
    task = cls.from_preset(source, preprocessor=None)
    weights = {v.path: v for v in task.get_layer("mlm_head").weights}
    return {ours: weights[f"mlm_head/{k}"].numpy() for k, ours in _NAMES}
