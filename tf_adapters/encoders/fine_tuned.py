"""Reads encoders that runs have fine-tuned.

A run that fine-tunes an encoder writes an adapter folder of method `full`,
which contains all weights of the encoder. A run of one task names the folder
`adapter`; it also contains the head, which is not read here. A run of several
tasks names the folder `encoder`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import cut

if TYPE_CHECKING:
    import keras_hub


def find_fine_tuned(source: str | Path) -> Path | None:
    """Returns the adapter folder with a fine-tuned encoder, or `None`.

    Args:
        source: Path of an adapter folder, or of the run that wrote one. For
            anything else the function returns `None`.
    """
    if not isinstance(source, Path):
        return None
    for place in (source, source / "encoder"):
        folder = adapter_folder.find_adapter_folder(place)
        if (folder / adapter_folder.CONFIG_FILE).is_file():
            return folder
    return None


def read_fine_tuned_config(folder: Path) -> dict[str, Any]:
    """Returns the configuration of an adapter folder that holds an encoder.

    Raises:
        AdapterError: If the folder does not hold an encoder, or is damaged.
    """
    config = adapter_folder.read_adapter_config(folder)
    method = config["method"]["name"]
    if method != "full":
        raise AdapterError(
            f"{folder} was trained with `{method}`: it holds no encoder. "
            "Expected the folder of a run with method `full`, or the folder "
            "`encoder` in a run with method `multitask`. This run's encoder "
            f"is `{cut(config['encoder']['name'])}`."
        )
    return config


def load_fine_tuned_weights(
    backbone: keras_hub.models.Backbone,
    folder: str | Path,
    config: dict[str, Any],
) -> None:
    """Assigns the fine-tuned weights in an adapter folder to a backbone.

    If no head used the pooler, the folder has no weights for it. The pooler
    then keeps the backbone's weights.

    Args:
        backbone: KerasHub backbone with the pretrained weights.
        folder: Path of the adapter folder.
        config: Return value of `read_fine_tuned_config`.

    Raises:
        AdapterError: If a weight other than the pooler's is missing, or a
            weight is unexpected or has the wrong shape. No weight is assigned
            in this case.
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
