"""A bank of many adapters compared with the bare encoder.

    python benchmarks/bank_speed.py
    python benchmarks/bank_speed.py --kinds=pfeiffer --adapters=8,1000

Texts a second on `minilm` with heads of two labels, float32. The adapters are
of the given methods in turn, so each text also passes through the layers of
the other methods; their weights are random. A batch asks for

- distinct: a different adapter for each text, as far as there are so many;
- uniform, zipf: adapters drawn uniformly, or with exponent 1.1;
- identical: one adapter for all texts.

All of them and the bare encoder take turns; a ratio is texts a second of the
bank over those of the encoder with a head alone, its spread is over the turns.

`bank_products.py` compares two ways to compute one bottleneck of such a batch.
"""

import argparse
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import measurements  # noqa: E402
import numpy as np  # noqa: E402

KINDS = "pfeiffer,lora,ia3,adapter_bias,prefix_tuning,houlsby"
SETTINGS = {
    "pfeiffer": {"units": 64},
    "houlsby": {"units": 16},
    "prefix_tuning": {"prefix_length": 8, "hidden_units": 0},
}
WORKLOADS = ("distinct", "uniform", "zipf", "identical")


def draw(workload, adapters, batch, generator):
    """Returns the number of each text's adapter, `(batch,)`."""
    if workload == "identical":
        return np.zeros(batch, "int32")
    if workload == "distinct":
        return generator.permutation(np.arange(batch) % adapters)
    weights = np.arange(1, adapters + 1) ** (-1.1 if workload == "zipf" else 0)
    return generator.choice(adapters, batch, p=weights / weights.sum())


def seconds_of(call):
    """Returns how long a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def make_models(encoder, kinds):
    """Returns a model of each kind, with weights that matter."""
    import tf_adapters

    head = tf_adapters.heads.Classification(("no", "yes"))
    models = []
    for kind in kinds:
        method = tf_adapters.methods.METHODS[kind](**SETTINGS.get(kind, {}))
        models.append(tf_adapters.adapt(encoder, method, head, name=kind))
    return models


def measure_bank(arguments):
    """Prints the table."""
    import tf_adapters

    encoder, _ = tf_adapters.load_encoder("minilm")
    models = make_models(encoder, arguments.kinds.split(","))
    (alone,) = make_models(encoder, ["head_only"])
    bare = graph_of(alone)
    counts = list(map(int, arguments.adapters.split(",")))
    bank = tf_adapters.load_bank(
        models, encoder, capacity=len(models) + max(counts)
    )
    generator = np.random.default_rng(0)
    for adapters in counts:
        # So that rows do not double again and again while adapters are added.
        bank.reserve(-(-adapters // len(models)) + 1)
        seconds = seconds_of(lambda n=adapters: fill(bank, models, n))
        ask = graph_of(bank)
        size = bank.num_bytes() / 1e6
        print(
            f"{adapters} adapters: {size:.0f} MB of rows; filled in "
            f"{seconds:.1f} s",
            file=sys.stderr,
        )
        rows = [
            measurements.row(f"{adapters} adapters, weights", "MB", [size]),
            measurements.row(f"{adapters} adapters, adding", "s", [seconds]),
        ]
        measurements.write(arguments.output, rows)
        for tokens in map(int, arguments.tokens.split(",")):
            calls = {
                workload: (ask, inputs_of(draw_ids, tokens, arguments.batch))
                for workload in WORKLOADS
                for draw_ids in [
                    lambda w=workload, n=adapters: ids_of(
                        bank, draw(w, n, arguments.batch, generator)
                    )
                ]
            }
            calls["bare"] = bare, inputs_of(None, tokens, arguments.batch)
            report(adapters, tokens, time_all(calls, arguments), arguments)


def graph_of(model):
    """Returns a graph of a model for any number of texts of any length."""
    import tensorflow as tf

    specs = {
        name: tf.TensorSpec(shape, tf.int32, name)
        for name, shape in model.feature_shapes().items()
    }
    return tf.function(
        lambda inputs: model(inputs, training=False), input_signature=[specs]
    )


def fill(bank, models, adapters):
    """Adds adapters until there are so many."""
    for number in range(len(bank.names) - len(models), adapters):
        bank.add(models[number % len(models)], name=f"adapter_{number}")


def ids_of(bank, numbers):
    """Returns the indices of adapters in the bank."""
    with bank.using([f"adapter_{number}" for number in numbers]) as used:
        return used.adapter_ids


def inputs_of(draw_ids, tokens, batch):
    """Returns a function that makes the inputs of a batch."""
    import tensorflow as tf

    generator = np.random.default_rng(1)
    ids = generator.integers(1000, 2000, (batch, tokens)).astype("int32")
    features = {
        "token_ids": tf.constant(ids),
        "padding_mask": tf.ones_like(ids),
        "segment_ids": tf.zeros_like(ids),
    }
    if draw_ids is None:
        return lambda: features
    return lambda: {**features, "adapter_ids": tf.constant(draw_ids(), "int32")}


def time_all(calls, arguments):
    """Returns {name: seconds a batch, one a turn}; the calls take turns."""
    seconds = {}
    for turn in range(arguments.turns + 1):
        for name, (call, make) in calls.items():
            batches = [make() for _ in range(arguments.steps)]

            def run(call=call, batches=batches):
                for batch in batches:
                    np.asarray(call(batch))

            value = seconds_of(run) / arguments.steps
            if turn:  # The first turn builds graphs and fills caches.
                seconds.setdefault(name, []).append(value)
    return {name: np.array(values) for name, values in seconds.items()}


def report(adapters, tokens, seconds, arguments):
    """Prints a line of the table for each workload."""
    bare, rows = seconds.pop("bare"), []
    for workload, values in seconds.items():
        rows.append(
            measurements.row(
                f"{adapters} adapters, {tokens} tokens, {workload}",
                "texts/s",
                arguments.batch / values,
                arguments.batch / bare,
                "encoder with a head alone",
                more_is_better=True,
            )
        )
        low, middle, high = np.quantile(bare / values, [0.25, 0.5, 0.75])
        print(
            f"| {adapters} | {tokens} | {workload} | "
            f"{arguments.batch / np.median(values):.0f} | "
            f"{arguments.batch / np.median(bare):.0f} | {middle:.2f} | "
            f"{low:.2f}-{high:.2f} |",
            flush=True,
        )
    measurements.write(arguments.output, rows)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--adapters", default="1,8,100,1000")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--tokens", default="32,128")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=2)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    print(
        "| adapters | tokens | batch | bank, texts/s | encoder, texts/s | "
        "ratio | middle half |\n" + "|---" * 7 + "|"
    )
    measure_bank(arguments)


if __name__ == "__main__":
    main()
