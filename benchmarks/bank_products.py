"""One bottleneck in a batch of many adapters, computed in two ways.

    python benchmarks/bank_products.py

Milliseconds for batches of a bank, as in `bank_speed.py`: products with kernels
that are copied for each text, as the bank computes them, and with texts sorted
by adapter, a product for each adapter.
"""

import argparse
import os
from pathlib import Path
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parent))

from bank_speed import WORKLOADS
from bank_speed import draw
from bank_speed import seconds_of
import numpy as np


def measure_products(arguments):
    """Prints a line for each width, length and workload."""
    import tensorflow as tf

    generator = np.random.default_rng(0)
    for units in (8, 64):
        kernels = [
            tf.Variable(generator.normal(size=shape).astype("float32"))
            for shape in (
                (arguments.adapters, 384, units),
                (arguments.adapters, units, 384),
            )
        ]
        for tokens in map(int, arguments.tokens.split(",")):
            x = generator.normal(size=(arguments.batch, tokens, 384))
            x = tf.constant(x, "float32")
            for workload in WORKLOADS:
                rows = draw(
                    workload, arguments.adapters, arguments.batch, generator
                )
                inputs = x, tf.constant(rows, "int32")
                print_products(units, tokens, workload, kernels, inputs)


def print_products(units, tokens, workload, kernels, inputs, repeats=30):
    """Prints the time of the two ways to multiply, in milliseconds."""
    import tensorflow as tf

    numbers = []
    for way in (copied, in_segments):
        call = tf.function(lambda x, rows, w=way: w(kernels, x, rows))
        np.asarray(call(*inputs))
        times = [
            seconds_of(lambda c=call: np.asarray(c(*inputs)))
            for _ in range(repeats)
        ]
        numbers.append(1e3 * np.median(times))
    distinct = len(np.unique(inputs[1]))
    print(
        f"| {units} | {tokens} | {workload} | {distinct} | "
        f"{numbers[0]:.2f} | {numbers[1]:.2f} |",
        flush=True,
    )


def copied(kernels, x, rows):
    """Multiplies each text by a copy of its adapter's kernels."""
    import tensorflow as tf

    for kernel in kernels:
        x = tf.matmul(x, kernel.sparse_read(rows))
    return x


def in_segments(kernels, x, rows):
    """Sorts texts by adapter, and multiplies the texts of each at once."""
    import tensorflow as tf

    order = tf.argsort(rows)
    distinct, _, counts = tf.unique_with_counts(tf.gather(rows, order))
    x, ends = tf.gather(x, order), tf.cumsum(counts)
    tokens, width = x.shape[1:]
    found = tf.TensorArray(
        tf.float32, tf.size(distinct), element_shape=[None, tokens, width]
    )

    def segment(i, found):
        part = tf.reshape(x[ends[i] - counts[i] : ends[i]], (-1, width))
        for kernel in kernels:
            part = tf.matmul(part, kernel.sparse_read(distinct[i]))
        return i + 1, found.write(i, tf.reshape(part, (-1, tokens, width)))

    _, found = tf.while_loop(
        lambda i, _: i < tf.size(distinct), segment, (0, found)
    )
    return tf.gather(found.concat(), tf.argsort(order))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--adapters", type=int, default=1000)
    parser.add_argument("--tokens", default="32,128")
    parser.add_argument("--batch", type=int, default=32)
    arguments = parser.parse_args()
    print(
        "| width | tokens | batch | adapters in it | copied, ms | sorted, ms "
        "|\n" + "|---" * 6 + "|"
    )
    measure_products(arguments)


if __name__ == "__main__":
    main()
