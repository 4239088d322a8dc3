"""Long texts, cut and in windows: the accuracy of a linear head.

    python benchmarks/windows_accuracy.py --data_dir=<folder>

A head on the frozen encoder (method `head_only`) trains on texts of
`<folder>/<task>/train.jsonl`, drawn with the seed, and is tested on some of
`test.jsonl`: with the end of long texts cut, and with the mean or the
maximum of the logits of up to `--windows` windows. All three share the
encoder's vectors, which are computed once, so the first window is the cut text.
The head has no dropout here.
"""

import argparse
import json
import os
from pathlib import Path
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras
from keras import ops
import numpy as np

WAYS = ("cut", "mean", "max")


def make_vectors(texts, windows, max_length):
    """Returns vectors `(texts, windows, width)`, and the windows that exist."""
    import tf_adapters
    from tf_adapters.data.examples import Examples
    from tf_adapters.data.tokens.windows import Windows
    from tf_adapters.data.tokens.windows import tokenize_windows
    from tf_adapters.text import predicting
    from tf_adapters.text.vectors import TextVectors

    encoder, tokenizer = tf_adapters.load_encoder("minilm")
    packer = tf_adapters.TextPacker(tokenizer, max_length)
    head = tf_adapters.heads.Regression()
    model = tf_adapters.adapt(encoder, tf_adapters.methods.HeadOnly(), head)
    ids, segments = tokenize_windows(packer, texts, Windows(windows))
    flat = Examples(
        *([w for row in x for w in row] for x in (ids, segments)),
        pad_id=packer.special_tokens.pad,
    )
    vectors = predicting.outputs_of(
        TextVectors(model, "first_token"), flat, 64, 0, head
    )
    counts = np.array([len(row) for row in ids])
    mask = np.arange(windows) < counts[:, None]
    filled = np.zeros((*mask.shape, len(vectors[0])), "float32")
    filled[mask] = np.stack(vectors)
    return filled, mask


class Pooled(keras.Model):
    """The head's layer on stored vectors of windows."""

    def __init__(self, head, width):
        super().__init__()
        self.head_layer = head.make_layer()
        self.head_layer.build((None, None, width))

    def call(self, inputs, training=None):
        vectors = inputs["vectors"]
        flat = ops.reshape(vectors, (-1, vectors.shape[-1]))
        mask = inputs["mask"][..., None]
        return self.head_layer(
            {"first_token_output": flat, "padding_mask": mask}
        )


def accuracy(way, train, test, seed, arguments):
    """Returns the share of right answers of a head on test texts."""
    from tf_adapters import heads

    keras.utils.set_random_seed(seed)
    pooling = "mean" if way == "cut" else way
    head = heads.Classification(
        ("0", "1"), dropout_rate=0.0, windows=arguments.windows, pooling=pooling
    )
    last = 1 if way == "cut" else arguments.windows
    (vectors, mask, labels), (test_vectors, test_mask, test_labels) = (
        train,
        test,
    )
    drawn = np.random.default_rng(seed).permutation(len(labels))
    drawn = drawn[: arguments.train]
    model = Pooled(head, vectors.shape[-1])
    rate = arguments.learning_rate
    model.compile(keras.optimizers.AdamW(rate), head.loss, jit_compile=False)
    model.fit(
        {"vectors": vectors[drawn, :last], "mask": mask[drawn, :last]},
        labels[drawn],
        batch_size=32,
        epochs=arguments.epochs,
        verbose=0,
    )
    outputs = model.predict(
        {"vectors": test_vectors[:, :last], "mask": test_mask[:, :last]},
        verbose=0,
    )
    return float((outputs.argmax(axis=1) == test_labels).mean())


def read(arguments, split, count):
    """Returns vectors, mask and labels of texts, drawn alike for all seeds."""
    path = Path(arguments.data_dir) / arguments.task / f"{split}.jsonl"
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    # A file may have its classes one after the other.
    order = np.random.default_rng(0).permutation(len(rows))[:count]
    texts = [rows[place]["sentence"] for place in order]
    names = sorted({str(row["label"]) for row in rows})
    labels = np.array([names.index(str(rows[i]["label"])) for i in order])
    vectors, mask = make_vectors(texts, arguments.windows, arguments.max_length)
    print(
        f"{split}: {len(order)} texts, {mask.sum(axis=1).mean():.2f} windows "
        f"each, {(mask.sum(axis=1) > 1).mean():.0%} with more than one; the "
        f"largest class {np.bincount(labels).max() / len(labels):.3f}",
        flush=True,
    )
    return vectors, mask, labels


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--task", default="imdb")
    parser.add_argument("--windows", type=int, default=4)
    parser.add_argument("--max_length", type=int, default=128)
    parser.add_argument("--pool", type=int, default=600, help="texts to draw")
    parser.add_argument("--train", type=int, default=400)
    parser.add_argument("--test", type=int, default=600)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--learning_rate", type=float, default=1e-2)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    train = read(arguments, "train", arguments.pool)
    test = read(arguments, "test", arguments.test)
    seeds = range(arguments.seeds)
    print(f"| long texts | {' | '.join(f'seed {s}' for s in seeds)} | mean |")
    print(f"|---|{'---|' * (len(seeds) + 1)}")
    for way in WAYS:
        found = [accuracy(way, train, test, s, arguments) for s in seeds]
        cells = " | ".join(f"{a:.4f}" for a in [*found, np.mean(found)])
        print(f"| {way} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
