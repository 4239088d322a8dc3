"""Writes the files that TensorFlow Serving reads in addition to a SavedModel.

`assets.extra/tf_serving_warmup_requests` in a version's folder holds requests
that the server answers before it accepts others. `models.config`, in the parent
folder of all models, lists the models. Layout and limits: tensorflow/serving,
tensorflow_serving/g3doc/{saved_model_warmup,serving_config}.md.
`batching_parameters.txt` says how the server batches requests of several
clients.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf import text_format
import tensorflow as tf

from tf_adapters.common.extras import needs_extra
from tf_adapters.common.text_files import replace_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Mapping
    import os
    from typing import Any

    from google.protobuf.message import Message

with needs_extra("export", "Export"):
    from tensorflow_serving.apis import model_pb2
    from tensorflow_serving.apis import predict_pb2
    from tensorflow_serving.apis import prediction_log_pb2
    from tensorflow_serving.config import model_server_config_pb2

EXTRA_FOLDER = "assets.extra"
DESCRIPTION_FILE = "model.json"
WARMUP_FILE = "tf_serving_warmup_requests"
CONFIG_FILE = "models.config"
BATCHING_FILE = "batching_parameters.txt"
# `BatchingParameters` of TensorFlow Serving, in the text form of protocol
# buffers. The number of threads is left to the server, which takes the number
# of cores. A batch waits for 2 milliseconds.
_BATCHING = """\
max_batch_size { value: 64 }
batch_timeout_micros { value: 2000 }
max_enqueued_batches { value: 100 }
"""


def predict_request(
    model_name: str, signature_name: str, inputs: Mapping[str, Any]
) -> Message:
    """Returns a `PredictRequest`, which asks a server for a model's answer.

    Args:
        model_name: Name under which the model is served.
        signature_name: Name of a signature.
        inputs: Dict from input name to an array or a tensor.
    """
    return predict_pb2.PredictRequest(
        model_spec=model_pb2.ModelSpec(
            name=model_name, signature_name=signature_name
        ),
        inputs={
            name: tf.make_tensor_proto(tf.convert_to_tensor(value))
            for name, value in inputs.items()
        },
    )


def write_warmup(
    version_folder: str | os.PathLike[str],
    requests: Iterable[Message],
) -> Path:
    """Writes warm-up requests into a SavedModel's folder.

    Args:
        version_folder: Folder of the SavedModel.
        requests: List of `PredictRequest`. The server reads at most 1,000.

    Returns:
        Path of the file.
    """
    path = Path(version_folder) / EXTRA_FOLDER / WARMUP_FILE
    path.parent.mkdir(exist_ok=True)
    with tf.io.TFRecordWriter(str(path)) as writer:
        for request in requests:
            log = prediction_log_pb2.PredictionLog(
                predict_log=prediction_log_pb2.PredictLog(request=request)
            )
            writer.write(log.SerializeToString())
    return path


def write_description(
    version_folder: str | os.PathLike[str], description: dict[str, Any]
) -> None:
    """Writes `model.json`, which describes a model to clients.

    Args:
        version_folder: Folder of the SavedModel.
        description: Dict of JSON values.
    """
    path = Path(version_folder) / EXTRA_FOLDER / DESCRIPTION_FILE
    text = json.dumps(description, indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


def versions(model_folder: str | os.PathLike[str]) -> list[int]:
    """Returns the versions in a model's folder as a sorted list of integers.

    Like the server, counts only folders whose name is a number.
    """
    return sorted(
        int(path.name)
        for path in Path(model_folder).glob("*")
        if path.is_dir() and path.name.isdecimal()
    )


def write_models_config(
    export_folder: str | os.PathLike[str], served_from: str = "/models"
) -> Path:
    """Writes `models.config`, which names every model in a folder.

    Args:
        export_folder: Folder that holds `<name>/<version>/`.
        served_from: Path of that folder on the server. Defaults to
            `"/models"`, where the `docker run` command in docs/serving.md
            mounts it.

    Returns:
        Path of the file.
    """
    folder = Path(export_folder)
    config = model_server_config_pb2.ModelServerConfig()
    for path in sorted(folder.iterdir()):
        if path.is_dir() and versions(path):
            config.model_config_list.config.add(
                name=path.name,
                base_path=f"{served_from}/{path.name}",
                model_platform="tensorflow",
            )
    path = folder / CONFIG_FILE
    replace_text(path, text_format.MessageToString(config))
    return path


def write_batching_parameters(
    export_folder: str | os.PathLike[str],
) -> Path:
    """Writes the settings with which a server batches requests of clients.

    They are for `--enable_batching --batching_parameters_file=<path>`.

    Args:
        export_folder: Folder that holds `models.config`.

    Returns:
        Path of the file, `batching_parameters.txt`.
    """
    path = Path(export_folder) / BATCHING_FILE
    replace_text(path, _BATCHING)
    return path
