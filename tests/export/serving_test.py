"""Tests that TensorFlow Serving can parse the files next to a SavedModel."""

from google.protobuf import descriptor_pb2
from google.protobuf import descriptor_pool
from google.protobuf import message_factory
from google.protobuf import text_format
from google.protobuf import wrappers_pb2  # noqa: F401  Of Int64Value.
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2
from tensorflow_serving.config import model_server_config_pb2

from tests.export import warmup
from tf_adapters.export import serving


def test_warmup_records_are_prediction_logs(tmp_path):
    request = serving.predict_request(
        "reviews", "token_ids", {"token_ids": np.array([[1, 2]], np.int32)}
    )
    path = serving.write_warmup(tmp_path, [request, request])
    assert path == tmp_path / "assets.extra" / "tf_serving_warmup_requests"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert len(records) == 2
    log = prediction_log_pb2.PredictionLog.FromString(records[0])
    assert log.WhichOneof("log_type") == "predict_log"
    parsed = log.predict_log.request
    assert parsed.model_spec.name == "reviews"
    assert parsed.model_spec.signature_name == "token_ids"
    received = tf.make_ndarray(parsed.inputs["token_ids"])
    assert received.dtype == np.int32
    np.testing.assert_array_equal(received, [[1, 2]])
    assert warmup.read_warmup(tmp_path) == [request, request]


def test_models_config_names_every_model_that_has_a_version(tmp_path):
    for folder in ("sst2/1", "sst2/2", "rte/7", "empty", "logs/today"):
        (tmp_path / folder).mkdir(parents=True)
    path = serving.write_models_config(tmp_path, "/served")
    config = text_format.Parse(
        path.read_text(), model_server_config_pb2.ModelServerConfig()
    )
    assert [
        (entry.name, entry.base_path, entry.model_platform)
        for entry in config.model_config_list.config
    ] == [
        ("rte", "/served/rte", "tensorflow"),
        ("sst2", "/served/sst2", "tensorflow"),
    ]


def test_models_config_of_a_run_names_its_task(pair_classifier):
    path = pair_classifier.folder.parents[1] / "models.config"
    config = text_format.Parse(
        path.read_text(), model_server_config_pb2.ModelServerConfig()
    )
    (entry,) = config.model_config_list.config
    assert (entry.name, entry.base_path) == ("wnli", "/models/wnli")


def _batching_parameters():
    """Returns an empty `BatchingParameters`, of the fields that are set."""
    file = descriptor_pb2.FileDescriptorProto(
        name="batching.proto",
        package="tests",
        dependency=["google/protobuf/wrappers.proto"],
        syntax="proto3",
    )
    message = file.message_type.add(name="BatchingParameters")
    # tensorflow_serving/servables/tensorflow/session_bundle_config.proto
    names = ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches")
    for number, name in enumerate(names, start=1):
        message.field.add(
            name=name,
            number=number,
            type=descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE,
            label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
            type_name=".google.protobuf.Int64Value",
        )
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(file.SerializeToString())
    found = pool.FindMessageTypeByName("tests.BatchingParameters")
    return message_factory.GetMessageClass(found)()


def test_batching_parameters_are_a_protocol_buffer(tmp_path):
    path = serving.write_batching_parameters(tmp_path)
    parameters = text_format.Parse(path.read_text(), _batching_parameters())
    assert parameters.max_batch_size.value == 64
    assert parameters.batch_timeout_micros.value == 2_000
    assert parameters.max_enqueued_batches.value == 100


def test_versions_are_numbers_in_numeric_order(tmp_path):
    for name in ("9", "10", ".11.partial", "best", "1.5"):
        (tmp_path / name).mkdir()
    (tmp_path / "12").write_text("a file")
    assert serving.versions(tmp_path) == [9, 10]
    assert serving.versions(tmp_path / "missing") == []
