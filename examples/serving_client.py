"""Asks a model that TensorFlow Serving serves, over REST or gRPC.

    python examples/serving_client.py --model=sst2 "a fine film"
    python examples/serving_client.py --model=rte --inputs=sentence1,sentence2 \
        "A dog runs outside." "An animal moves."
    python examples/serving_client.py --model=sst2 --protocol=grpc "a fine film"

REST needs only Python; gRPC needs tensorflow-serving-api and TensorFlow. The
functions can be copied into a program of one's own.
"""

import argparse
import json
import sys
import urllib.error
import urllib.request


def predict_rest(address, model, columns, signature="serving_default"):
    """Returns a dict for each text, asked over REST.

    Args:
        address: `"host:port"`; the server's REST port is 8501 by default.
        model: Name of the served model.
        columns: Dict from input name to a list with a value for each text.
        signature: Name of the signature.

    Raises:
        RuntimeError: With what the server says, if it answers with an error.
    """
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    body = {
        "signature_name": signature,
        "instances": [dict(zip(names, row, strict=True)) for row in rows],
    }
    request = urllib.request.Request(
        f"http://{address}/v1/models/{model}:predict",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            predictions = json.load(response)["predictions"]
    except urllib.error.HTTPError as error:
        raise RuntimeError(error.read().decode(errors="replace")) from error
    # The server leaves out the name of a single output. Of these, only vectors
    # are lists.
    return [
        row if isinstance(row, dict) else {_name(row): row}
        for row in predictions
    ]


def _name(output):
    return "vector" if isinstance(output, list) else "score"


def predict_grpc(address, model, columns, signature="serving_default"):
    """Returns a dict for each text, asked over gRPC.

    Args:
        address: `"host:port"`; the server's gRPC port is 8500 by default.
        model: Name of the served model.
        columns: Dict from input name to a list with a value for each text.
        signature: Name of the signature.

    Raises:
        grpc.RpcError: If the server cannot be reached or refuses.
    """
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2
    from tensorflow_serving.apis import prediction_service_pb2_grpc

    request = predict_pb2.PredictRequest()
    request.model_spec.name = model
    request.model_spec.signature_name = signature
    for name, values in columns.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(values))
    with grpc.insecure_channel(address) as channel:
        stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
        response = stub.Predict(request, timeout=60)
    outputs = {
        name: _plain(tf.make_ndarray(tensor).tolist())
        for name, tensor in response.outputs.items()
    }
    rows = zip(*outputs.values(), strict=True)
    return [dict(zip(outputs, row, strict=True)) for row in rows]


def _plain(value):
    """Returns nested lists with their bytes as text."""
    if isinstance(value, list):
        return [_plain(one) for one in value]
    return value.decode() if isinstance(value, bytes) else value


def main(arguments=None):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", required=True)
    parser.add_argument("--protocol", choices=["rest", "grpc"], default="rest")
    parser.add_argument("--address", help="Default: localhost:8501 or :8500.")
    parser.add_argument(
        "--inputs",
        default="sentence",
        help="Names of the model's text inputs. Default: sentence. A model's "
        "assets.extra/model.json lists them.",
    )
    parser.add_argument(
        "texts",
        nargs="+",
        help="As many for each question as there are inputs.",
    )
    options = parser.parse_args(arguments)
    names = options.inputs.split(",")
    if len(options.texts) % len(names):
        parser.error(
            f"{len(options.texts)} texts do not divide into groups of "
            f"{len(names)}: {', '.join(names)}."
        )
    columns = {
        name: options.texts[i :: len(names)] for i, name in enumerate(names)
    }
    ask, port = {"rest": (predict_rest, 8501), "grpc": (predict_grpc, 8500)}[
        options.protocol
    ]
    address = options.address or f"localhost:{port}"
    for row in ask(address, options.model, columns):
        print(json.dumps(row, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
