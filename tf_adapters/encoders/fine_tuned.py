"""Encoders that runs trained: new weights for those that they started from.

What such a run leaves is an adapter folder of method `full`, which holds every
weight of the encoder: `adapter` of a run that fine-tuned one (its head is no
part of the encoder), or `encoder` of a run of several tasks.
"""

from pathlib import Path

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut


def find_fine_tuned(source):
    """Returns the adapter folder that an encoder's name stands for, or `None`.

    Args:
        source: Path of an adapter folder, or of the run that wrote one;
            anything else is no such encoder.
    """
    if not isinstance(source, Path):
        return None
    for place in (source, source / "encoder"):
        folder = adapter_folder.find_adapter_folder(place)
        if (folder / adapter_folder.CONFIG_FILE).is_file():
            return folder
    return None


def read_fine_tuned_config(folder):
    """Returns the configuration of an adapter folder that holds an encoder.

    Raises:
        AdapterError: If it holds none, or is damaged.
    """
    config = adapter_folder.read_adapter_config(folder)
    method = config["method"]["name"]
    if method != "full":
        raise AdapterError(
            f"{folder} was trained with `{method}`: it holds no encoder. "
            "Expected the folder of a run of method `full`, or the folder "
            "`encoder` of one of method `multitask`. This one belongs to the "
            f"encoder `{cut(config['encoder']['name'])}`."
        )
    return config


def load_fine_tuned_weights(backbone, folder, config):
    """Assigns trained weights to the backbone that they were trained from.

    A pooler that nothing read was not trained; it stays the backbone's.

    Args:
        backbone: KerasHub backbone.
        folder: Path of the adapter folder.
        config: What `read_fine_tuned_config` returned.

    Raises:
        AdapterError: If another weight is missing, or one is unexpected or
            misshaped. Then no weight was assigned.
    """
    path = Path(folder) / adapter_folder.WEIGHTS_FILE
    tensors = adapter_folder.read_weights(folder, config)
    tensors = {
        name: tensor
        for name, tensor in tensors.items()
        if not name.startswith("head/")
    }
    pooler = getattr(backbone, "pooled_dense", None)
    optional = {w.path for w in pooler.weights} if pooler else set()
    variables = {
        weight.path: weight
        for weight in backbone.weights
        if weight.path in tensors or weight.path not in optional
    }
    adapter_folder.assign_tensors(variables, tensors, path)
