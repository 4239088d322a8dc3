"""Reads many texts from a file; prints processor time and memory as JSON.

    python benchmarks/scale_worker.py --source=stream --rows=100000
    python benchmarks/scale_worker.py --source=run --rows=100000

`stream` trains a head on a tiny frozen encoder for one epoch, with
`TextModel.fit` on a `tf.data` dataset that reads the file. `run` reads the file
and makes tokens, as a command does before it trains: it holds all of them. Both
use the vocabulary of `minilm`. A process for each measurement: the most memory
that one has used does not fall again.
"""

import argparse
import json
import os
from pathlib import Path
import resource
import sys
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import keras_hub
import tensorflow as tf

import tf_adapters
from tf_adapters.config import resolve
from tf_adapters.encoders import minilm
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.huggingface_tokenizer import (
    load_huggingface_tokenizer,
)
from tf_adapters.runs import experiment
from tf_adapters.runs import task_data

_WORDS = ("good", "bad", "film", "story", "actor", "scene", "slow", "bright")
BATCH_SIZE = 256


def text_of(number):
    """Returns a text of 5 to 9 words, another one for each number."""
    words = (_WORDS[(number >> 3 * i) % 8] for i in range(4 + number % 5))
    return f"{' '.join(words)} {number}"


def peak_megabytes():
    """Returns the most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def resident_bytes():
    """Returns the memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def prepare_stream(rows, folder):
    """Returns a function that trains a head on the texts of a file."""
    path = folder / "texts.tsv"
    with path.open("w", encoding="utf-8") as file:
        for number in range(rows):
            file.write(f"{number % 2}\t{text_of(number)}\n")
    backbone = keras_hub.models.BertBackbone(30_522, 1, 2, 32, 64)
    model = tf_adapters.TextModel(
        Encoder("tiny", backbone, "gelu", 1e-12, 0.0, 0.0, True),
        load_huggingface_tokenizer(minilm.minilm_folder()),
        method="head_only",
        labels=("no", "yes"),
        max_length=32,
    )

    def columns(line):
        label, text = tf.unstack(tf.strings.split(line, "\t"), 2)
        return text, tf.strings.to_number(label, tf.int32)

    texts = tf.data.TextLineDataset(str(path)).map(columns).batch(BATCH_SIZE)
    model.fit(texts.take(1), epochs=1, verbose=0)  # Builds the graphs.
    return lambda: model.fit(texts, epochs=1, verbose=0)


def prepare_run(rows, folder):
    """Returns a function that reads and tokenizes the texts of a task."""
    (folder / "sst2").mkdir()
    for split, number in (("train", rows), ("validation", 8), ("test", 8)):
        path = folder / "sst2" / f"{split}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for one in range(number):
                row = {"sentence": text_of(one), "label": one % 2}
                file.write(json.dumps(row) + "\n")
    config = resolve.resolve_config(
        {
            "task": "sst2",
            "method": {"name": "head_only"},
            "data": {"data_dir": str(folder)},
        }
    )

    run = experiment.Experiment(config, task_data.get_task(config))

    def read():
        data = task_data.load_task_data(config)
        return data, run.examples(data.rows["train"])

    return read


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--source", choices=("stream", "run"), required=True)
    parser.add_argument("--rows", type=int, required=True)
    arguments = parser.parse_args()
    prepare = {"stream": prepare_stream, "run": prepare_run}[arguments.source]
    with tempfile.TemporaryDirectory() as folder:
        work = prepare(arguments.rows, Path(folder))
        before, started = resident_bytes() / 1e6, time.process_time()
        kept = work()
        answer = {
            "processor_seconds": time.process_time() - started,
            "megabytes": peak_megabytes(),
            "megabytes_more": resident_bytes() / 1e6 - before,
        }
    del kept  # Held until the memory was read.
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
