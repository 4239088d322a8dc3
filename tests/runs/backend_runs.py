"""Whole runs of many kinds, trained with the backend of this process.

    python -m tests.runs.backend_runs jax <folder for runs> <data> [kinds]

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
        "pretrain": {"steps": 9, "batch_size": 16, "learning_rate": 1e-3},
    },
    "fusion": {
        "task": "demo_sentiment",
        "method": "fusion",
        "members": {"tasks": ["demo_sentiment", "stsb"], "settings": MEMBER},
        # The rate of the preset. Some gradients are near zero.
        "train": {"learning_rate": 5e-5},
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


def settings(kind, backend, data_dir):
    """Returns the settings of a kind of run."""
    return {
        "method": {"name": "houlsby", "units": 8},
        "encoder": str(huggingface_folders.ONE_BLOCK),
        "backend": backend,
        "head": {"dropout_rate": 0.0},
        **KINDS[kind],
        "data": {
            "data_dir": str(data_dir),
            "max_length": 24,
            "max_train_examples": 56,
        },
        "train": {
            "epochs": 2,
            "batch_size": 16,
            "learning_rate": 1e-3,
            "encoder_dropout": False,
            **KINDS[kind].get("train", {}),
        },
    }


def run(kinds, backend, folder, data_dir):
    """Trains runs, each in a folder with the name of its kind."""
    for kind in kinds:
        path = Path(folder) / kind / "run"
        status = commands.run(path, settings(kind, backend, data_dir))
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
    used, runs, data, *chosen = sys.argv[1:]
    run(chosen or KINDS, used, runs, data)
