"""Trains what finished runs trained with the `adapters` library, and compares.

    python train.py --study=methods --data_dir=<folder>
    python benchmarks/accuracy.py --runs='runs/methods/*-houlsby-*' \
        --peer_python=.venv-peer/bin/python

Each run of `--runs`, of the method `houlsby` or `pfeiffer` on a local encoder
folder or `minilm`, is trained once more by the library: the same examples,
seed, width, activation, learning rate, epochs and batch size. Initialisation
and the draws of batches and dropout are its own. Prints the validation metric
that selects, a line for each run, and the mean difference with its standard
error. What the library has trained is kept in `--model_dir`.
"""

import argparse
import glob
import json
import os
from pathlib import Path
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
import peer_rows  # noqa: E402

from tf_adapters import config as config_lib  # noqa: E402
from tf_adapters import methods  # noqa: E402
from tf_adapters import minilm  # noqa: E402
from tf_adapters.data import splits  # noqa: E402
from tf_adapters.training import runs  # noqa: E402

PEER = Path(__file__).parent / "peers" / "adapters_train.py"
ACTIVATIONS = {"silu": "swish", "gelu_tanh": "gelu_new"}


def peer_flags(config):
    """Returns the library's settings for a run's configuration."""
    method = methods.to_config(config.method)
    if method["name"] not in ("houlsby", "pfeiffer") or not method["units"]:
        raise ValueError(
            "Only `houlsby` and `pfeiffer` with `method.units` are compared. "
            f"Received: {method['name']} with units={method['units']}"
        )
    if not config.train.encoder_dropout:
        raise ValueError("The library trains with the encoder's dropout on.")
    activation = method["activation"]
    encoder = minilm.folder() if config.encoder == "minilm" else config.encoder
    flags = {
        "method": method["name"],
        "units": method["units"],
        "activation": ACTIVATIONS.get(activation, activation),
        "encoder": encoder,
        "epochs": config.train.epochs,
        "learning_rate": config.train.learning_rate,
        "batch_size": config.train.batch_size,
        "max_length": config.data.max_length,
        "seed": config.seed,
    }
    flags = [f"--{name}={value}" for name, value in flags.items()]
    norms = method.get("train_layer_norms", False)
    return flags + ["--group_by_length"] + ["--train_layer_norms"] * norms


def train_peer(config, task, folder, python):
    """Returns the metrics of the library's best epoch, trained if missing."""
    output = folder / "result.json"
    if not output.exists():
        folder.mkdir(parents=True, exist_ok=True)
        rows = splits.load_rows(config, task)
        flags = [f"--output={output}", f"--metric={task.metrics[0]}"]
        for split in ("train", "validation"):
            path = folder / f"{split}.jsonl"
            peer_rows.write(rows[split], task.text_fields, path)
            flags.append(f"--{split}={path}")
        subprocess.run([python, PEER, *peer_flags(config), *flags], check=True)
    return json.loads(output.read_text())["best"]


def compare(run_folder, arguments):
    """Returns our and the library's selecting metric of one run."""
    result = runs.read_result(run_folder)
    if result is None:
        raise ValueError(f"{run_folder} is not the folder of a finished run.")
    config = config_lib.load(Path(run_folder) / "config.yaml")
    task = splits.get_task(config)
    folder = Path(arguments.model_dir) / Path(run_folder).name
    metric = task.metrics[0]
    ours = result["validation"][metric]
    theirs = train_peer(config, task, folder, arguments.peer_python)[metric]
    print(
        f"| {Path(run_folder).name} | {metric} | {ours:.4f} | {theirs:.4f} "
        f"| {ours - theirs:+.4f} |",
        flush=True,
    )
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--runs", required=True, help="run folders, with * for many"
    )
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--model_dir", default="runs/accuracy")
    arguments = parser.parse_args()
    folders = sorted(glob.glob(arguments.runs))
    if not folders:
        parser.error(f"no folder matches {arguments.runs}")
    print(
        "| run | metric | ours | theirs | difference |\n|---|---|---|---|---|"
    )
    values = np.array([compare(folder, arguments) for folder in folders])
    differences = values[:, 0] - values[:, 1]
    print(f"\nmean difference {differences.mean():+.4f}", end="")
    if len(values) > 1:
        error = differences.std(ddof=1) / np.sqrt(len(values))
        print(f", standard error {error:.4f}", end="")
    print(f", {len(values)} runs")


if __name__ == "__main__":
    main()
