"""Serves one SavedModel for each task in one process; see `serving_peers.py`.

python benchmarks/saved_models_server.py --models=<folder> --port=8600
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

import small_server


def load(folder):
    """Returns a dict from the name of a task to its SavedModel."""
    # Here, so that --help is fast.
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    return {
        path.parent.name: tf.saved_model.load(str(path))
        for path in sorted(Path(folder).glob("*/1"))
    }


def make_answer(models):
    """Returns a function that answers a batch, see `small_server.Batches`."""
    import tensorflow as tf

    serve = {k: m.signatures["serving_default"] for k, m in models.items()}

    def answer(asked):
        answers = [0.0] * len(asked)
        for name, places in small_server.by_name(asked).items():
            texts = tf.constant([asked[place][1] for place in places])
            found = serve[name](texts)["probabilities"].numpy()
            for place, row in zip(places, found, strict=True):
                answers[place] = float(row[0])
        return answers

    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    models = load(arguments.models)
    small_server.serve(arguments.port, make_answer(models))


if __name__ == "__main__":
    main()
