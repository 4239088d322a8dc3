"""What a Keras user does with each method, on the backend of this process.

Prints a JSON object, from method to feature to "yes" or what went wrong, and
writes outputs and trained weights to an `.npz` file, to be compared with those
of other backends.
"""

import argparse
import contextlib
import json
import os
from pathlib import Path
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("KERAS_BACKEND", "tensorflow")

import keras
import numpy as np

from tests import tiny
from tests.methods import cases
import tf_adapters

HEAD = tf_adapters.heads.Classification(("no", "yes"), dropout_rate=0.0)
# Two steps of two replicas, or of one device.
ROWS, BATCH = 8, 4
# Those that differ in what Keras has to do: weights of the encoder that train,
# mixed and changed weights, gates, layers in several places, frozen members.
METHODS = ("full_mixout", "bitfit", "houlsby", "lora", "diff_pruning")
METHODS += ("adapter_bias_l0_shared", "projected_attention", "fusion_subset")
METHODS += ("fusion",)


def mirrored():
    """Returns the scope of a strategy of two logical processors."""
    import tensorflow as tf

    (cpu,) = tf.config.list_physical_devices("CPU")
    devices = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, devices)
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope()


class Walk:
    """One method's model, on the way through the features, in their order."""

    FEATURES = ("call", "fit", "evaluate", "predict", "merge", "leave_out")
    FEATURES += ("save", "load", "save_adapter", "load_adapter")

    def __init__(self, name, folder, dropout=0.0):
        self.method, self.folder = cases.EVERY[name], folder
        self.num_blocks = cases.num_blocks(self.method)
        self.dropout = dropout
        self.model = cases.build(self.encoder(), self.method, HEAD)
        # Gates stay where they begin, open: closed ones train nothing.
        trained = self.model.trained_variables()
        tiny.randomize(
            [v for name, v in trained.items() if "log_alpha" not in name], 0.1
        )
        self.features = tiny.batch(self.model.encoder_info, size=ROWS)
        self.labels = np.arange(ROWS) % 2
        self.model.compile(
            keras.optimizers.SGD(0.1),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            metrics=["accuracy"],
        )

    def encoder(self):
        return tiny.encoder(dropout=self.dropout, num_blocks=self.num_blocks)

    def outputs(self):
        return keras.ops.convert_to_numpy(self.model(self.features))

    def call(self):
        self.at_start = self.outputs()
        assert np.isfinite(self.at_start).all()

    def fit(self):
        before = tiny.values(self.model.trained_variables().values())
        frozen = tiny.values(self.model.non_trainable_weights)
        history = self.model.fit(
            self.features,
            self.labels,
            batch_size=BATCH,
            shuffle=False,
            verbose=0,
        ).history
        assert np.isfinite(history["loss"]).all()
        after = tiny.values(self.model.trained_variables().values())
        unchanged = [
            name
            for name, a, b in zip(
                self.model.trained_variables(), before, after, strict=True
            )
            if np.array_equal(a, b) and not _may_stay(name)
        ]
        assert not unchanged, f"did not train: {unchanged}"
        for a, b in zip(
            frozen, tiny.values(self.model.non_trainable_weights), strict=True
        ):
            np.testing.assert_array_equal(a, b)

    def evaluate(self):
        loss, _ = self.model.evaluate(
            self.features, self.labels, batch_size=BATCH, verbose=0
        )
        log_odds = self.outputs()
        correct = log_odds[np.arange(ROWS), self.labels]
        expected = np.log(np.exp(log_odds).sum(1)) - correct
        penalty = float(keras.ops.convert_to_numpy(self.model.penalty()))
        np.testing.assert_allclose(
            loss, expected.mean() + penalty, rtol=1e-5, atol=1e-5
        )

    def predict(self):
        np.testing.assert_allclose(
            self.predicted(), self.outputs(), atol=2e-6, rtol=1e-5
        )

    def predicted(self):
        return self.model.predict(self.features, batch_size=BATCH, verbose=0)

    def leave_out(self):
        if not any(self.model.slots):
            return "none to leave out"
        before = self.predicted()
        block = max(i for i, slots in enumerate(self.model.slots) if slots)
        self.model.leave_out((block,))
        after = self.predicted()
        assert np.abs(after - before).max() > 1e-4
        self.predict()
        return "yes"

    def merge(self):
        model = self.model
        if not model.reparameterization.functions + model.method.folds(model):
            return "nothing to merge"
        before = self.outputs()
        self.model.fold()
        np.testing.assert_allclose(self.outputs(), before, atol=2e-6)
        self.model.unfold()
        np.testing.assert_array_equal(self.outputs(), before)
        return "yes"

    def save(self):
        self.model.save(self.folder / "model.keras")

    def load(self):
        loaded = keras.models.load_model(self.folder / "model.keras")
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(loaded(self.features)),
            self.outputs(),
            atol=2e-6,
        )

    def save_adapter(self):
        if isinstance(self.method, tf_adapters.methods.Fusion):
            return "needs folders"
        self.trained = dict(
            zip(
                self.model.trained_variables(),
                tiny.values(self.model.trained_variables().values()),
                strict=True,
            )
        )
        tf_adapters.save_adapter(
            self.model, self.folder / "adapter", overwrite=True
        )
        return "yes"

    def load_adapter(self):
        if isinstance(self.method, tf_adapters.methods.Fusion):
            return "needs folders"
        loaded = tf_adapters.load_adapter(
            self.folder / "adapter", self.encoder()
        )
        np.testing.assert_allclose(
            keras.ops.convert_to_numpy(loaded(self.features)),
            self.outputs(),
            atol=2e-6,
        )
        return "yes"


def _may_stay(name):
    """Whether two steps may leave a variable where it is.

    Words and positions that no text has, biases that cancel in a softmax, and
    gates under a sigmoid's flat end.
    """
    return "embedding" in name or "key" in name or "log_alpha" in name


def walk(name, folder):
    """Returns from feature to "yes" or what happened, and arrays to compare."""
    found, arrays = {}, {}
    try:
        way = Walk(name, Path(folder))
    except Exception as error:
        return {feature: _words(error) for feature in Walk.FEATURES}, arrays
    for feature in Walk.FEATURES:
        try:
            found[feature] = getattr(way, feature)() or "yes"
        except Exception as error:
            found[feature] = _words(error)
        if feature in ("call", "fit") and found[feature] == "yes":
            arrays[f"{name}/{feature}"] = way.outputs()
    return found, arrays


def _words(error):
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


def dropout_trains(folder):
    """Returns whether `fit` with dropout trains, and draws again each step."""
    way = Walk("houlsby", Path(folder), dropout=0.3)
    model = way.model
    first, second = (
        keras.ops.convert_to_numpy(model(way.features, training=True))
        for _ in range(2)
    )
    assert np.abs(first - second).max() > 1e-3
    way.fit()
    return "yes"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", required=True)
    parser.add_argument("--mirrored", action="store_true")
    parser.add_argument("--methods", default=",".join(METHODS))
    options = parser.parse_args()
    scope = mirrored() if options.mirrored else contextlib.nullcontext()
    found, arrays = {}, {}
    with scope, tempfile.TemporaryDirectory() as folder:
        for name in options.methods.split(","):
            found[name], some = walk(name, folder)
            arrays.update(some)
            print(name, file=sys.stderr, flush=True)
        try:
            dropout = dropout_trains(folder)
        except Exception as error:
            dropout = _words(error)
        found["houlsby"]["dropout"] = dropout
    np.savez(options.output, **arrays)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
