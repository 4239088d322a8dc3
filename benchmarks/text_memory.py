"""How much memory the text model's packing takes of many short texts.

Nothing trains: every batch of one epoch is made, as `fit` asks for it, with
the vocabulary of `minilm`. Prints a line of JSON: rows, seconds, and the
largest size of the process when all texts are there, and at the end, in MB.

    PYTHONPATH=. python benchmarks/text_memory.py --source=list --rows=2000000

`list` is a list of Python's texts, `dataset` a `tf.data.Dataset` on a
generator.
"""

import argparse
import json
import resource
import time

import tensorflow as tf

from tf_adapters import heads
from tf_adapters.encoders.huggingface_tokenizer import (
    load_huggingface_tokenizer,
)
from tf_adapters.encoders.minilm import minilm_folder
from tf_adapters.text import packers
from tf_adapters.text import rows as text_rows
from tf_adapters.text import streams
from tf_adapters.text import training
from tf_adapters.text.packer_layer import PackerLayer

HEAD = heads.Classification(labels=("no", "yes"))
_WORDS = ("good", "bad", "film", "story", "actor", "scene", "slow", "bright")


def _text(number):
    words = (_WORDS[(number >> 3 * i) % 8] for i in range(4 + number % 5))
    return f"{' '.join(words)} {number}"


def _list_batches(packer, count, batch_size):
    texts = [_text(i) for i in range(count)]
    labels = [i % 2 for i in range(count)]
    before = _peak()
    rows = text_rows.rows_of(texts, labels, HEAD)
    batches = training.batches_of(HEAD, rows, packer, batch_size, 0, None)
    return before, batches


def _dataset_batches(packer, count, batch_size):
    spec = (tf.TensorSpec((), tf.string), tf.TensorSpec((), tf.int32))
    dataset = tf.data.Dataset.from_generator(
        lambda: ((_text(i), i % 2) for i in range(count)),
        output_signature=spec,
    )
    stream = streams.open_dataset(dataset, HEAD, batch_size)
    packer = streams.graph_packer_of(PackerLayer(packer))
    return _peak(), stream.features(HEAD, packer, labeled=True)


def _peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", choices=("list", "dataset"))
    parser.add_argument("--rows", type=int)
    parser.add_argument("--batch_size", type=int, default=256)
    options = parser.parse_args()
    tokenizer = load_huggingface_tokenizer(minilm_folder())
    packer = packers.packer_of(tokenizer, 128, True)
    make = {"list": _list_batches, "dataset": _dataset_batches}
    begin = time.monotonic()
    with_texts, batches = make[options.source](
        packer, options.rows, options.batch_size
    )
    rows = sum(len(features["token_ids"]) for features, *_ in batches)
    result = {
        "source": options.source,
        "rows": rows,
        "seconds": round(time.monotonic() - begin),
        "mb_with_texts": with_texts,
        "mb_peak": _peak(),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
