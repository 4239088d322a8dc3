"""Accuracy of each method after a short run, by learning rate.

    python benchmarks/short_run_rates.py --data_dir=<folder> --output=<file>

Trains `TextModel` for at least 150 steps on 100 text messages, 1,000 tweets and
5,000 sentences, with multiples of the rates in `tf_adapters/text/defaults.py`.
docs/log.md has the results. Runs that the output file has are skipped.
"""

import argparse
import json
import math
from pathlib import Path
import random

import keras

import tf_adapters
from tf_adapters.text import defaults

# Folder, rows that train, rows that are evaluated, batch size.
SETS = (
    ("cf_airline", 1000, 500, 16),
    ("sst2", 5000, 500, 32),
    ("sms_spam", 100, 500, 8),
)
METHODS = (
    *("pfeiffer", "lora", "full", "adapter_bias", "bitfit", "head_only"),
    *("houlsby", "ia3", "prefix_tuning", "layer_norm", "parallel"),
    *("compacter", "mam", "top_layers", "prompt_tuning", "scaled_parallel"),
    *("unipelt", "projected_attention", "diff_pruning"),
)
LEAST_STEPS = 150
# Tokens; few, as there are many runs.
MAX_LENGTH = 32
# These identify a run.
_KEYS = ("data", "encoder", "method", "rate", "seed")


def read_rows(path, count):
    """Returns texts and labels of `count` rows, drawn with a fixed seed."""
    lines = path.read_text(encoding="utf-8").rstrip("\n").split("\n")
    rows = [json.loads(line) for line in lines]
    rows = random.Random(0).sample(rows, min(count, len(rows)))
    texts = [row["sentence"] for row in rows]
    return texts, [str(row["label"]) for row in rows]


def score(
    folder, train_size, dev_size, batch_size, encoder, method, rate, seed
):
    """Returns the metrics of one run on the validation rows."""
    texts, labels = read_rows(folder / "train.jsonl", train_size)
    dev = read_rows(folder / "dev.jsonl", dev_size)
    names = sorted({*labels, *dev[1]})
    model = tf_adapters.TextModel.from_preset(
        encoder,
        method=method,
        labels=names,
        max_length=MAX_LENGTH,
        learning_rate=rate,
        seed=seed,
    )
    steps = math.ceil(len(texts) / batch_size)
    model.fit(
        texts,
        labels,
        batch_size=batch_size,
        epochs=math.ceil(LEAST_STEPS / steps),
        verbose=0,
    )
    return model.evaluate(*dev, verbose=0)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--sets", default=",".join(name for name, *_ in SETS))
    parser.add_argument("--factors", default="1,0.333,3")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    finished = set()
    if arguments.output.exists():
        for line in arguments.output.read_text().splitlines():
            row = json.loads(line)
            finished.add(tuple(row[key] for key in _KEYS))
    grid = [
        (method, float(factor), one)
        for one in SETS
        if one[0] in arguments.sets.split(",")
        for method in arguments.methods.split(",")
        for factor in arguments.factors.split(",")
    ]
    for method, factor, (name, *sizes) in grid:
        usual = defaults.learning_rate_for({"name": method})
        rate = float(f"{usual * factor:.0e}")
        row = {"data": name, "rows": sizes[0], "method": method, "rate": rate}
        row |= {"encoder": arguments.encoder, "seed": arguments.seed}
        if tuple(row[key] for key in _KEYS) in finished:
            continue
        folder = arguments.data_dir / name
        metrics = score(
            folder, *sizes, arguments.encoder, method, rate, arguments.seed
        )
        keras.backend.clear_session()
        row["metrics"] = metrics
        with arguments.output.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
