"""Tests the example client with servers that have TensorFlow Serving's API.

TensorFlow Serving itself is not needed: the REST server here follows the row
format of its documentation (api_rest.md), the gRPC server is made of its own
stubs, and both answer with an exported SavedModel.
"""

from concurrent import futures
import http.server
import json
import threading

import grpc
import numpy as np
import pytest
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2
from tensorflow_serving.apis import prediction_service_pb2_grpc

from examples import serving_client

pytestmark = pytest.mark.integration

SENTENCES = {
    "sentence1": ["the film is good", "é 電影", "bad"],
    "sentence2": ["it was not dull", "", "the plot " * 20],
}


@pytest.fixture(scope="module")
def signatures(pair_classifier):
    return pair_classifier.loaded.signatures


@pytest.fixture(scope="module")
def rest_address(signatures):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            length = int(self.headers["Content-Length"])
            body = json.loads(self.rfile.read(length))
            status, answer = 200, None
            if self.path == "/v1/models/wnli:predict":
                answer = {"predictions": self._predict(body)}
            else:
                status, answer = 404, {"error": f"no servable {self.path}"}
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def _predict(self, body):
            instances = body["instances"]
            outputs = signatures[body["signature_name"]](
                **{
                    name: tf.constant([row[name] for row in instances])
                    for name in instances[0]
                }
            )
            columns = {
                name: [x.decode() for x in tensor.numpy()]
                if tensor.dtype == tf.string
                else tensor.numpy().tolist()
                for name, tensor in outputs.items()
            }
            return [
                dict(zip(columns, row, strict=True))
                for row in zip(*columns.values(), strict=True)
            ]

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("localhost", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"localhost:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def grpc_address(signatures):
    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            if request.model_spec.name != "wnli":
                context.abort(grpc.StatusCode.NOT_FOUND, "no such servable")
            outputs = signatures[request.model_spec.signature_name](
                **{
                    name: tf.constant(tf.make_ndarray(tensor))
                    for name, tensor in request.inputs.items()
                }
            )
            return predict_pb2.PredictResponse(
                outputs={
                    name: tf.make_tensor_proto(tensor)
                    for name, tensor in outputs.items()
                }
            )

    server = grpc.server(futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(
        Service(), server
    )
    port = server.add_insecure_port("localhost:0")
    server.start()
    yield f"localhost:{port}"
    server.stop(None)


@pytest.mark.parametrize("protocol", ["rest", "grpc"])
def test_the_client_gets_the_live_models_answers(
    protocol, pair_classifier, request
):
    address = request.getfixturevalue(f"{protocol}_address")
    ask = getattr(serving_client, f"predict_{protocol}")
    rows = ask(address, "wnli", SENTENCES)
    expected = pair_classifier.expected(*SENTENCES.values())
    assert [row["label"] for row in rows] == expected["label"]
    assert [row["label_id"] for row in rows] == list(expected["label_id"])
    np.testing.assert_allclose(
        [row["probabilities"] for row in rows],
        expected["probabilities"],
        atol=1e-5,
    )


def test_errors_of_the_server_are_shown(rest_address, grpc_address):
    with pytest.raises(RuntimeError, match="no servable"):
        serving_client.predict_rest(rest_address, "other", SENTENCES)
    with pytest.raises(grpc.RpcError, match="no such servable"):
        serving_client.predict_grpc(grpc_address, "other", SENTENCES)


def test_the_command_line_prints_a_line_for_each_pair(rest_address, capsys):
    serving_client.main(
        [
            "--model=wnli",
            f"--address={rest_address}",
            "--inputs=sentence1,sentence2",
            "the film",
            "the plot",
            "not bad",
            "very good",
        ]
    )
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    asked = {
        "sentence1": ["the film", "not bad"],
        "sentence2": ["the plot", "very good"],
    }
    assert rows == serving_client.predict_rest(rest_address, "wnli", asked)


def test_texts_that_do_not_divide_into_pairs_are_refused(capsys):
    with pytest.raises(SystemExit):
        serving_client.main(["--model=m", "--inputs=a,b", "one"])
    assert "1 texts do not divide into groups of 2" in capsys.readouterr().err


def test_texts_of_any_shape_are_decoded():
    """Such as a bank's label names and a tagger's words."""
    nested = np.array([[b"a", "é".encode()], [b"", b"b"]], object)
    assert serving_client._plain(nested.tolist()) == [["a", "é"], ["", "b"]]
    assert serving_client._plain(np.eye(2).tolist()) == [[1, 0], [0, 1]]
