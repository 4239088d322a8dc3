"""Draws the settings of short runs, and writes the data that they read."""

import json

from tests.fixtures import huggingface_folders

METHODS = (
    *("houlsby", "pfeiffer", "lora", "bitfit", "ia3", "layer_norm", "parallel"),
    *("adapter_bias", "adapter_bias_l0", "prefix_tuning", "prompt_tuning"),
    *("houlsby_mixout", "mixout", "diff_pruning", "layer_norm", "head_only"),
    *("full", "unipelt"),
)
# One task for each kind of output, with a function that makes its rows.
_ROWS = {
    "sst2": lambda i: {"sentence": _text(i), "label": i % 2},
    "stsb": lambda i: {
        "sentence1": _text(i),
        "sentence2": _text(i // 2),
        "label": float(i % 6),
    },
    "winogrande": lambda i: {
        "sentence": f"the _ {_text(i)}",
        "choices": ["film", "plot"],
        "label": i % 2,
    },
    "wikiann": lambda i: {
        "tokens": _text(i).split(),
        "tags": ["B-PER" if i % 2 else "O"] + ["O"] * (i % 3 + 1),
    },
    "squad": lambda i: {
        "id": f"q{i}",
        "question": "who is it ?",
        "context": f"a good film {i}",
        "answers": {"text": ["film"], "answer_start": [7]},
    },
}
_FOLDERS = {"wikiann": "panx/en"}


def _text(number):
    words = [
        "good" if number % 2 else "bad",
        *["film"] * (number % 3),
        str(number),
    ]
    return " ".join(words)


def write_data(folder):
    """Writes the rows of all tasks."""
    for task, row in _ROWS.items():
        place = folder / _FOLDERS.get(task, task)
        place.mkdir(parents=True, exist_ok=True)
        for split, count in (("train", 36), ("dev", 10), ("test", 6)):
            lines = (json.dumps(row(i)) + "\n" for i in range(count))
            (place / f"{split}.jsonl").write_text("".join(lines))


def draw(chance):
    """Returns the flags of a run, without its folders.

    Args:
        chance: `random.Random`.
    """
    train = {
        "epochs": 2,
        "batch_size": chance.choice((8, 12)),
        "validate_every_steps": chance.choice((2, 3)),
        "early_stopping_patience": 20,
        "learning_rate": chance.choice((3e-4, 2e-3)),
        "snapshot_steps": 4,
    }
    values = {
        "data.max_length": 24,
        "seed": chance.randrange(3),
        **{f"train.{key}": value for key, value in train.items()},
    }
    return [
        f"--task={chance.choice(list(_ROWS))}",
        f"--method={chance.choice(METHODS)}",
        f"--encoder={huggingface_folders.ONE_BLOCK}",
        "--params_override=" + ",".join(f"{k}={v}" for k, v in values.items()),
    ]
