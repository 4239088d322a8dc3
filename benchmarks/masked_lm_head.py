"""Trains a head for masked tokens on a BERT encoder that has none.

    python benchmarks/masked_lm_head.py --data_dir=<folder> --output=<encoder>

The encoder, `minilm`, stays frozen. The head's last matrix is the encoder's
token embedding, as in BERT, so only a dense layer, a norm and a bias train, on
the training texts of some tasks in `<folder>`. `<encoder>` becomes a Hugging
Face folder, a `BertForMaskedLM` with the encoder's own weights, for
`--encoder=<encoder>` and for pretraining with `--pretrain_steps`. A stopped
command resumes in `<encoder>.training`.
"""

import argparse
import json
import os
from pathlib import Path
import shutil
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from safetensors import safe_open
from safetensors.numpy import load_file
from safetensors.numpy import save_file
import yaml

# Tasks of whole sentences, so that the head sees many kinds of text.
TASKS = ("agnews", "boolq", "cola", "imdb", "mnli", "mrpc", "qnli", "qqp")
TASKS += ("rte", "sick", "sst2", "stsb")
# Our names of the head's weights, and those in a `BertForMaskedLM`.
_TENSORS = {
    "kernel": "transform.dense.weight",
    "bias": "transform.dense.bias",
    "gamma": "transform.LayerNorm.weight",
    "beta": "transform.LayerNorm.bias",
    "output_bias": "bias",
}
_VALIDATION = 1000


def find_bert(name):
    """Returns the path of a BERT encoder's Hugging Face folder.

    Args:
        name: Name, address or path of the encoder, as of `--encoder`.

    Raises:
        UserError: If there is no such encoder, or if it is no BERT.
    """
    from tf_adapters.common.errors import UserError
    from tf_adapters.common.text_files import read_json
    from tf_adapters.encoders.load import find_encoder

    folder = Path(find_encoder(name))
    path = folder / "config.json"
    kind = read_json(path).get("model_type") if path.exists() else None
    if kind != "bert" or not (folder / "model.safetensors").exists():
        raise UserError(
            f"--encoder={name} must be a BERT in a Hugging Face folder, with "
            "model.safetensors and a config.json whose `model_type` is `bert`. "
            f"Received a `model_type`: {kind}"
        )
    return folder


def texts_of(tasks, data_dir, most, seed=0):
    """Returns the training texts of tasks in random order, without repeats.

    Args:
        tasks: Names of built-in tasks.
        data_dir: Folder with their data.
        most: Maximum number of rows of each task.
        seed: Integer that determines the rows and the order.
    """
    from tf_adapters import tasks as task_lib
    from tf_adapters.data.rows.sources import find_source

    generator = np.random.default_rng(seed)
    texts = {}
    for name in tasks:
        task = task_lib.get(name)
        rows = find_source(task, "train", data_dir).rows()
        for index in generator.permutation(len(rows))[:most]:
            fields = [rows[index][field] for field in task.text_fields]
            texts[" ".join(text for text in fields if text)] = None
    texts = list(texts)
    return [texts[i] for i in generator.permutation(len(texts))]


def write_task(texts, folder):
    """Writes texts, and a task that masks their tokens; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    splits = {"train": texts[_VALIDATION:], "validation": texts[:_VALIDATION]}
    for split, own in splits.items():
        lines = [json.dumps({"text": text}) + "\n" for text in own]
        path = folder / f"{split}.jsonl"
        path.write_text("".join(lines), encoding="utf-8")
    task = {
        "name": "texts",
        "head": "masked_lm",
        "text_fields": ["text"],
        "metrics": ["log_likelihood", "masked_accuracy"],
        "files": {split: f"{split}.jsonl" for split in splits},
    }
    path = folder / "task.yaml"
    path.write_text(yaml.safe_dump(task, sort_keys=False))
    return path


def train(task_file, arguments):
    """Trains the head; returns the run's folder and its result."""
    from tf_adapters.config import resolve
    from tf_adapters.runs import task_data
    from tf_adapters.runs import whole_run

    config = resolve.resolve_config(
        {
            "encoder": arguments.encoder,
            "method": {"name": "head_only"},
            "data": {"task_file": str(task_file), "max_length": 64},
            "train": {
                "epochs": 100,
                "max_steps": arguments.steps,
                "learning_rate": 1e-3,
                "warmup_fraction": 0.1,
                "encoder_dropout": False,
                "keep": "last",
            },
        }
    )
    folder = task_file.parent / "run"
    data = task_data.load_task_data(config)
    return folder, whole_run.train_run(config, data, folder)


def write_checkpoint(encoder_folder, adapter_folder, output):
    """Writes an encoder and a trained head as a `BertForMaskedLM`.

    Args:
        encoder_folder: Path of the encoder's Hugging Face folder, a BERT.
        adapter_folder: Path of the folder with the head's weights.
        output: Path of the new folder.
    """
    output.mkdir(parents=True)
    for file in encoder_folder.iterdir():
        if file.is_file() and file.suffix != ".safetensors":
            shutil.copy2(file, output)
    config = json.loads((output / "config.json").read_text())
    config["architectures"] = ["BertForMaskedLM"]
    (output / "config.json").write_text(json.dumps(config, indent=2))
    tensors = {}
    with safe_open(encoder_folder / "model.safetensors", "numpy") as file:
        for name in file.keys():  # noqa: SIM118
            own = name.removeprefix("bert.")
            tensors[f"bert.{own}"] = file.get_tensor(name)
    head = load_file(adapter_folder / "adapter.safetensors")
    for ours, theirs in _TENSORS.items():
        array = head[f"head/{ours}"]
        array = array.T if ours == "kernel" else array
        tensors[f"cls.predictions.{theirs}"] = np.ascontiguousarray(array)
    path = output / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--output", required=True, type=Path)
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--tasks", type=lambda text: text.split(","))
    parser.add_argument("--rows", type=int, default=4000, help="of each task")
    parser.add_argument("--steps", type=int, default=4000)
    arguments = parser.parse_args()
    if arguments.output.exists():
        parser.error(f"{arguments.output} exists. Remove it to train again.")
    encoder = find_bert(arguments.encoder)
    # A name such as minilm-2.1 has no suffix to replace.
    folder = arguments.output.with_name(f"{arguments.output.name}.training")
    tasks = arguments.tasks or TASKS
    texts = texts_of(tasks, arguments.data_dir, arguments.rows)
    run, result = train(write_task(texts, folder), arguments)
    write_checkpoint(encoder, run / "adapter", arguments.output)
    found = result["validation"]
    print(
        f"{arguments.output}: {len(texts)} texts, {result['steps']} steps of "
        f"32; loss on {_VALIDATION} other texts {-found['log_likelihood']:.3f}"
        f", masked tokens that are right {found['masked_accuracy']:.3f}"
    )


if __name__ == "__main__":
    main()
