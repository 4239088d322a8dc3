"""Vectors of sentences, before and after tuning: does an adapter help?

    python benchmarks/sentence_vectors.py --data_dir=<folder>

Adapters train on pairs of `<folder>/<task>/train.jsonl`, drawn with the seed,
and are tested on some of `test.jsonl`. `stsb` and `sick` train the cosine of a
pair on its score (head `sentence_vector`); `stsb_ranking` trains pairs of
STS-B with a score of 4 or more to find each other (head `sentence_ranking`).
"Untuned" is the encoder alone. Finished runs are rows of `--results` and are
not run again.
"""

import argparse
import json
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

# Task: its folder, the label's field, the range of labels, the metrics.
TASKS = {
    "stsb": ("stsb", "label", (0, 5), ("spearman", "pearson")),
    "sick": ("sick", "relatedness", (1, 5), ("spearman", "pearson")),
    "stsb_ranking": ("stsb", "label", None, ("mrr", "recall_at_1")),
}
UNTUNED = "untuned"


def read(arguments, task, split):
    """Returns the pairs and scores of a split, in the order of the file."""
    folder, label, ends, _ = TASKS[task]
    path = Path(arguments.data_dir) / folder / f"{split}.jsonl"
    with path.open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if ends or row[label] >= 4]
    pairs = [(row["sentence1"], row["sentence2"]) for row in rows]
    return pairs, [row[label] for row in rows]


def draw(pairs, scores, count, seed):
    """Returns some of the rows, drawn with a seed."""
    order = np.random.default_rng(seed).permutation(len(pairs))[:count]
    return [pairs[i] for i in order], [scores[i] for i in order]


def make_head(task):
    from tf_adapters import heads

    ends = TASKS[task][2]
    if ends is None:
        return heads.SentenceRanking()
    return heads.SentenceVector(lowest_score=ends[0], highest_score=ends[1])


def measure(arguments, task, method, seed):
    """Trains and tests one adapter; returns a dict of its result."""
    import tf_adapters

    is_untuned = method == UNTUNED
    model = tf_adapters.TextModel.from_preset(
        arguments.encoder,
        method="head_only" if is_untuned else method,
        head=make_head(task),
        max_length=arguments.max_length,
        seed=seed,
    )
    pairs, scores = draw(*read(arguments, task, "train"), arguments.train, seed)
    labels = scores if TASKS[task][2] else None
    start = time.time()
    if not is_untuned:
        epochs = arguments.epochs
        model.fit(pairs, labels, epochs=epochs, batch_size=32, verbose=0)
    seconds = time.time() - start
    # The same test rows for all seeds.
    test, scores = draw(*read(arguments, task, "test"), arguments.test, 0)
    labels = scores if TASKS[task][2] else None
    found = model.evaluate(test, labels, verbose=0)
    weights = sum(
        map(np.size, model.adapter_model.trained_variables().values())
    )
    return {
        "task": task,
        "method": method,
        "seed": seed,
        **{name: found[name] for name in TASKS[task][3]},
        "train": len(pairs),
        "test": len(test),
        "seconds": seconds,
        "trained_weights": int(weights),
    }


def results(arguments):
    """Yields the results of all runs; runs those that are not stored."""
    path = Path(arguments.results)
    stored = {}
    if path.exists():
        rows = map(json.loads, path.read_text("utf-8").splitlines())
        stored = {(r["task"], r["method"], r["seed"]): r for r in rows}
    for task in arguments.tasks.split(","):
        for method in (UNTUNED, *arguments.methods.split(",")):
            seeds = 1 if method == UNTUNED else arguments.seeds
            for key in [(task, method, seed) for seed in range(seeds)]:
                if key not in stored:
                    stored[key] = measure(arguments, *key)
                    with path.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(stored[key]) + "\n")
                yield stored[key]


def print_tables(rows):
    """Prints a table of means and standard deviations for each task."""
    for task in dict.fromkeys(row["task"] for row in rows):
        names = TASKS[task][3]
        print(f"\n| {task} | {' | '.join(names)} | trained weights | seconds |")
        print(f"|---|{'---|' * (len(names) + 2)}")
        own = [row for row in rows if row["task"] == task]
        for method in dict.fromkeys(row["method"] for row in own):
            some = [row for row in own if row["method"] == method]
            cells = [_cell([row[name] for row in some]) for name in names]
            seconds = np.mean([row["seconds"] for row in some])
            cells += [f"{some[0]['trained_weights']:,}", f"{seconds:.0f}"]
            print(f"| {method} | {' | '.join(cells)} |")


def _cell(values):
    points = 100 * np.array(values)
    if len(points) == 1:
        return f"{points[0]:.1f}"
    return f"{points.mean():.1f} ± {points.std(ddof=1):.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--tasks", default="stsb,sick,stsb_ranking")
    parser.add_argument("--methods", default="pfeiffer,lora")
    parser.add_argument("--train", type=int, default=1000)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--max_length", type=int, default=48)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--results", default="sentence_vectors.jsonl")
    arguments = parser.parse_args()
    print_tables(list(results(arguments)))


if __name__ == "__main__":
    main()
