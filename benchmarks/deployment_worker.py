"""Loads an exported file and runs it on command, to be timed.

    python benchmarks/deployment_worker.py <format> <path>

`deployment_speed.py` drives it through JSON lines. A format is a key of
`LOADERS`: a function that returns the function from features to logits.
"""

import argparse
import json
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

import numpy as np

ROWS = 32


def shapes(short, long):
    """Returns rows and tokens of the batches, by name."""
    return {"one": (1, short), "short": (ROWS, short), "long": (ROWS, long)}


def load_saved_model(path):
    """Returns the signature `token_ids` of a SavedModel."""
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    loaded = tf.saved_model.load(str(path))
    serve = loaded.signatures["token_ids"]

    def run(features):
        tensors = {k: tf.constant(v) for k, v in features.items()}
        return serve(**tensors)["probabilities"].numpy()

    run.keeps = loaded
    return run


def load_onnx(path):
    """Returns an ONNX file's function, as in `run.py`."""
    import onnxruntime

    (file,) = Path(path).glob("*.onnx")
    session = onnxruntime.InferenceSession(str(file))
    return lambda features: session.run(["logits"], features)[0]


def load_openvino(path):
    """Returns an OpenVINO model's function."""
    import openvino

    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    (file,) = Path(path).glob("*.xml")
    model = openvino.compile_model(file, "CPU", exact)
    return lambda features: model(features)["logits"]


def load_litert(path):
    """Returns a LiteRT file's function, on all cores."""
    from ai_edge_litert import interpreter

    (file,) = Path(path).glob("*.tflite")
    model = interpreter.Interpreter(str(file), num_threads=os.cpu_count())

    def run(features):
        name = f"tokens_{features['token_ids'].shape[-1]}"
        return model.get_signature_runner(name)(**features)["logits"]

    return run


LOADERS = {
    "saved_model": load_saved_model,
    "onnx": load_onnx,
    "openvino": load_openvino,
    "litert": load_litert,
}


def make_features(shape, names, vocabulary_size, seed=0):
    """Returns a batch of random tokens without padding."""
    rows, tokens = shape
    generator = np.random.default_rng(seed)
    ids = generator.integers(5, vocabulary_size, (rows, tokens))
    features = {
        "token_ids": ids,
        "padding_mask": np.ones_like(ids),
        "segment_ids": np.zeros_like(ids),
    }
    return {name: features[name].astype("int32") for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("format", choices=LOADERS)
    parser.add_argument("path")
    parser.add_argument("--names", default="token_ids,padding_mask,segment_ids")
    parser.add_argument("--vocabulary_size", type=int, default=30522)
    parser.add_argument("--lengths", type=int, nargs=2, default=[32, 128])
    arguments = parser.parse_args()
    output, sys.stdout = sys.stdout, sys.stderr
    load = LOADERS[arguments.format]
    load(arguments.path)  # Imports of libraries do not count.
    started = time.perf_counter()
    run = load(arguments.path)
    seconds = time.perf_counter() - started
    names = arguments.names.split(",")
    batches = {
        what: make_features(shape, names, arguments.vocabulary_size)
        for what, shape in shapes(*arguments.lengths).items()
    }
    print(json.dumps({"load": seconds}), file=output, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        started = time.perf_counter()
        for _ in range(command["steps"]):
            run(batches[command["do"]])
        answer = {"seconds": time.perf_counter() - started}
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
