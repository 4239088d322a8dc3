"""Reads the requests that `serving.write_warmup` wrote."""

from pathlib import Path

import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from tf_adapters.export import serving


def read_warmup(version_folder):
    """Returns the `PredictRequest`s that `write_warmup` wrote."""
    path = Path(version_folder) / serving.EXTRA_FOLDER / serving.WARMUP_FILE
    return [
        prediction_log_pb2.PredictionLog.FromString(
            record.numpy()
        ).predict_log.request
        for record in tf.data.TFRecordDataset(str(path))
    ]
