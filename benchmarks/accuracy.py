"""The same seeds and examples through ours and through the `adapters` library.

    python benchmarks/accuracy.py --data_dir=<folder> --task=sst2 \
        --max_train_examples=5000 --epochs=2 --peer_python=.venv-peer/bin/python

Trains one adapter a seed on each side on `minilm` and prints the validation
metric of the best epoch, the mean difference and its standard error. Without
`--peer_python` only ours runs. Finished runs are kept under `--model_dir`.
"""

import argparse
import json
import os
from pathlib import Path
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
import peer_rows  # noqa: E402

from tf_adapters import config as config_lib  # noqa: E402
from tf_adapters import minilm  # noqa: E402
from tf_adapters.data import splits  # noqa: E402
from tf_adapters.training import runs  # noqa: E402

# Both sides have the activation of the library's own configuration.
ACTIVATIONS = {"houlsby": ("silu", "swish"), "pfeiffer": ("relu", "relu")}


def ours(arguments, seed, folder):
    """Returns the validation metrics of our run of one seed."""
    activation = ACTIVATIONS[arguments.method][0]
    settings = f"method.activation={activation},method.units=64"
    if arguments.method == "pfeiffer":
        settings += ",method.reduction_factor=null"
        settings += ",train.early_stopping_patience=null"
    command = [sys.executable, str(ROOT / "train.py"), "--mode=train"]
    command += [f"--task={arguments.task}", f"--method={arguments.method}"]
    command += [f"--data_dir={arguments.data_dir}", f"--model_dir={folder}"]
    command += [f"--params_override={settings}", f"--seed={seed}"]
    command += _shared_flags(arguments)
    if arguments.max_train_examples:
        command += [f"--max_train_examples={arguments.max_train_examples}"]
    if runs.read_result(folder) is None:
        subprocess.run(command, check=True)
    return runs.read_result(folder)["validation"]


def theirs(arguments, seed, folder):
    """Returns the validation metrics of the library's run of one seed."""
    output = folder / "result.json"
    if not output.exists():
        folder.mkdir(parents=True, exist_ok=True)
        _write_rows(arguments, seed, folder)
        script = Path(__file__).parent / "peers" / "adapters_train.py"
        command = [arguments.peer_python, str(script), "--group_by_length"]
        command += [f"--train={folder / 'train.jsonl'}"]
        command += [f"--validation={folder / 'validation.jsonl'}"]
        command += [f"--encoder={minilm.folder()}", f"--output={output}"]
        command += [f"--method={arguments.method}", f"--seed={seed}"]
        command += [f"--activation={ACTIVATIONS[arguments.method][1]}"]
        command += [f"--metric={arguments.metric}"]
        if arguments.method == "houlsby":
            command += ["--train_layer_norms"]
        subprocess.run(command + _shared_flags(arguments), check=True)
    return json.loads(output.read_text())["best"]


def _shared_flags(arguments):
    return [
        f"--epochs={arguments.epochs}",
        f"--learning_rate={arguments.learning_rate}",
        "--batch_size=32",
    ]


def _write_rows(arguments, seed, folder):
    config = config_lib.resolve(
        {
            "task": arguments.task,
            "seed": seed,
            "data": {
                "data_dir": arguments.data_dir,
                "max_train_examples": arguments.max_train_examples,
            },
        }
    )
    task = splits.get_task(config)
    rows = splits.load_rows(config, task)
    for split in ("train", "validation"):
        peer_rows.write(
            rows[split], task.text_fields, folder / f"{split}.jsonl"
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--task", required=True)
    parser.add_argument("--method", default="houlsby", choices=ACTIVATIONS)
    parser.add_argument("--metric", default="accuracy")
    parser.add_argument("--max_train_examples", type=int)
    parser.add_argument("--epochs", type=int, required=True)
    parser.add_argument("--learning_rate", type=float, default=5e-4)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--peer_python")
    parser.add_argument("--model_dir", default="runs/accuracy")
    arguments = parser.parse_args()
    rows = []
    for seed in map(int, arguments.seeds.split(",")):
        name = f"{arguments.task}_{arguments.method}_{seed}"
        folder = Path(arguments.model_dir)
        values = [ours(arguments, seed, folder / f"ours_{name}")]
        if arguments.peer_python:
            values.append(theirs(arguments, seed, folder / f"peer_{name}"))
        rows.append([value[arguments.metric] for value in values])
        print(f"seed {seed}: {rows[-1]}", flush=True)
    report(np.array(rows), arguments)


def report(values, arguments):
    """Prints means, and the difference of the sides with its error."""
    means = ", ".join(f"{mean:.4f}" for mean in values.mean(0))
    print(f"{arguments.task} {arguments.method} {arguments.metric}: {means}")
    if values.shape[1] == 2 and len(values) > 1:
        differences = values[:, 0] - values[:, 1]
        error = differences.std(ddof=1) / np.sqrt(len(differences))
        print(f"difference {differences.mean():+.4f}, error {error:.4f}")


if __name__ == "__main__":
    main()
