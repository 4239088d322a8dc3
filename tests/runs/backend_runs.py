"""Whole runs of many kinds, trained with the backend of this process.

    python -m tests.runs.backend_runs jax one_device <folder for runs> <data>

Dropout is off, because each backend draws other masks.
"""

import json
import os
from pathlib import Path
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tests import commands
from tests.fixtures import huggingface_folders

MASKED_LM = Path(__file__).parents[1] / "fixtures/one_block/masked_lm"
# Encoders with code of their own for attention or blocks.
ENCODERS = ("albert", "deberta", "modernbert", "mpnet", "distilbert_bare")
# With adapters that do little, the gradient of a fusion's values is noise.
MEMBER = {
    "method": {"name": "pfeiffer", "units": 8},
    "train": {"epochs": 4, "learning_rate": 3e-2, "encoder_dropout": False},
    "head": {"dropout_rate": 0.0},
}
# Kind of run: the settings that it does not share with the others.
KINDS = {
    "multitask": {
        "method": {"name": "multitask", "tasks": ["demo_sentiment", "stsb"]},
    },
    "pretraining": {
        "task": "demo_sentiment",
        "encoder": str(MASKED_LM),
        "method": {"name": "pfeiffer", "units": 8},
        "pretrain": {"steps": 9, "batch_size": 16, "learning_rate": 1e-3},
    },
    "fusion": {
        "task": "demo_sentiment",
        "method": "fusion",
        "members": {"tasks": ["demo_sentiment", "stsb"], "settings": MEMBER},
        # The rate of the preset. Some gradients are near zero.
        "train": {"learning_rate": 5e-5},
    },
    # On the adapters of the run before, which stay frozen (MAD-X).
    "stacked": {
        "task": "demo_sentiment",
        "encoder": str(MASKED_LM),
        "method": {"name": "pfeiffer", "units": 4},
        "stack_on": "pretraining",
    },
    "quantized": {"task": "demo_sentiment", "quantize": "int8"},
    "windows": {
        "task": "demo_sentiment",
        "data": {"max_length": 8, "windows": 3},
    },
    "tagging": {"task": "ud_pos", "encoder": commands.ENCODER},
    "spans": {"task": "squad", "encoder": commands.ENCODER, "head": {}},
    **{
        name: {
            "task": "demo_sentiment",
            "encoder": str(huggingface_folders.folder(name)),
        }
        for name in ENCODERS
    },
}


def settings(kind, backend, strategy, data_dir):
    """Returns the settings of a kind of run."""
    return {
        "method": {"name": "houlsby", "units": 8},
        "encoder": str(huggingface_folders.ONE_BLOCK),
        "backend": backend,
        "distribution_strategy": strategy,
        "head": {"dropout_rate": 0.0},
        **KINDS[kind],
        "data": {
            "data_dir": str(data_dir),
            "max_length": 24,
            "max_train_examples": 56,
            **KINDS[kind].get("data", {}),
        },
        "train": {
            "epochs": 2,
            "batch_size": 16,
            "learning_rate": 1e-3,
            "encoder_dropout": False,
            **KINDS[kind].get("train", {}),
        },
    }


def run(backend, strategy, folder, data_dir):
    """Trains a run of each kind, in a folder with the name of the kind."""
    for kind in KINDS:
        path = Path(folder) / kind / "run"
        chosen = settings(kind, backend, strategy, data_dir)
        if "stack_on" in chosen:
            chosen["stack_on"] = str(Path(folder) / chosen["stack_on"] / "run")
        status = commands.run(path, chosen)
        assert status == 0, kind


def write_data(folder):
    """Writes small data of three tasks: of scores, of tags, and of spans."""
    pairs = [
        {
            "sentence1": "the film is good " * (i % 5),
            "sentence2": "it was dull",
            "label": float(i % 5),
        }
        for i in range(24)
    ]
    text = "".join(json.dumps(row) + "\n" for row in pairs)
    _write(folder / "stsb", dict.fromkeys(("train.jsonl", "dev.jsonl"), text))
    tags = {"the": "DET", "film": "NOUN", "is": "AUX", "good": "ADJ"}
    sentences = [list(tags)[i % 3 :] * (1 + i % 4) for i in range(18)]
    text = "".join(_sentence(words, tags) for words in sentences)
    names = (f"en_x/{split}.conllu" for split in ("train", "dev"))
    _write(folder / "ud", dict.fromkeys(names, text))
    context = "the plot is bad , but the film is not ,  it was very good . " * 2
    questions = [
        {
            "id": f"q{i}",
            "question": f"what is {answer}",
            "answers": [
                {"text": answer, "answer_start": context.index(answer)}
            ],
        }
        for i, answer in enumerate(["film", "bad", "very good"] * 4)
    ]
    paragraphs = [{"context": context, "qas": questions}]
    text = json.dumps({"data": [{"paragraphs": paragraphs}]})
    names = (f"{split}-v1.1.json" for split in ("train", "dev"))
    _write(folder / "squad", dict.fromkeys(names, text))


def _sentence(words, tags):
    """Returns the lines of a sentence in the CoNLL-U format."""
    lines = (
        f"{i}\t{word}\t_\t{tags[word]}\t_\t_\t_\t_\t_\t_\n"
        for i, word in enumerate(words, 1)
    )
    return "".join(lines) + "\n"


def _write(folder, texts):
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    run(*sys.argv[1:])
