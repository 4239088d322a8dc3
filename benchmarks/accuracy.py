"""Trains what finished runs trained with the `adapters` library, and compares.

    python train.py --study=methods --data_dir=<folder>
    python benchmarks/accuracy.py --runs='runs/methods/*-houlsby-*' \
        --peer_python=.venv-peer/bin/python

Each run of `--runs`, of the method `houlsby` or `pfeiffer` on a local encoder
folder or `minilm`, is trained once more by the library: the same examples,
seed, width, activation, learning rate, epochs and batch size. Initialization
and the draws of batches and dropout are its own. Taggers, readers and choosers
get our tokens too, and what they give is scored by our heads. Prints the
validation metric that selects, a line for each run, and the mean difference
with its standard error. What the library has trained is kept in `--model_dir`.
A run that the library's side would train in another way is refused.
"""

import argparse
import dataclasses
import glob
import hashlib
import json
import os
from pathlib import Path
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

import numpy as np  # noqa: E402
import peer_rows  # noqa: E402

from tf_adapters import heads  # noqa: E402
from tf_adapters import methods  # noqa: E402
from tf_adapters.common import dataclass_config  # noqa: E402
from tf_adapters.config import resolve  # noqa: E402
from tf_adapters.config import settings as config_settings  # noqa: E402
from tf_adapters.data.rows import splits  # noqa: E402
from tf_adapters.data.tokens import packing  # noqa: E402
from tf_adapters.encoders import load  # noqa: E402
from tf_adapters.encoders import minilm  # noqa: E402
from tf_adapters.runs import earlier_runs  # noqa: E402
from tf_adapters.runs import task_data  # noqa: E402

PEERS = Path(__file__).parent / "peers"
ACTIVATIONS = {"silu": "swish", "gelu_tanh": "gelu_new"}
# How the library's side trains, in addition to the defaults of `train`,
THEIRS = {
    "data": {"batching": "grouped"},
    "pretrain": {"steps": 0},
    "init_adapter": None,
    "method": {"reduction_factor": None, "leave_out": [], "mixout": 0.0},
}
# and of these, its arguments or what changes no result.
PASSED_ON = {
    *("train.learning_rate", "train.epochs", "train.batch_size"),
    *("train.eval_batch_size", "train.accumulation_steps"),
    *("train.steps_per_loop", "train.checkpoint_seconds"),
    *("train.deterministic", "train.log_gradient_norms"),
}


def peer_flags(config):
    """Returns the library's settings for a run's configuration."""
    _check_alike(config)
    method = methods.to_config(config.method)
    activation = method["activation"]
    encoder = (
        minilm.minilm_folder() if config.encoder == "minilm" else config.encoder
    )
    flags = {
        "method": method["name"],
        "units": method["units"],
        "activation": ACTIVATIONS.get(activation, activation),
        "encoder": encoder,
        "epochs": config.train.epochs,
        "learning_rate": config.train.learning_rate,
        "batch_size": config.train.batch_size,
        "seed": config.seed,
    }
    flags = [f"--{name}={value}" for name, value in flags.items()]
    norms = method.get("train_layer_norms", False)
    return flags + ["--group_by_length"] + ["--train_layer_norms"] * norms


def _check_alike(config):
    """Refuses a run that the library's side would train in another way."""
    name = methods.to_config(config.method)["name"]
    if name not in ("houlsby", "pfeiffer"):
        raise ValueError(f"`{name}` is neither houlsby nor pfeiffer.")
    given = dataclass_config.flatten(resolve.to_dict(config))
    defaults = dataclasses.asdict(config_settings.TrainConfig())
    theirs = dataclass_config.flatten({**THEIRS, "train": defaults})
    unlike = [
        f"{key}={given[key]}, there {value}"
        for key, value in theirs.items()
        if key not in PASSED_ON and given[key] != value
    ]
    if unlike:
        raise ValueError(
            f"The library's side would train otherwise: {'; '.join(unlike)}."
        )


def train_peer(config, task, folder, python):
    """Returns the library's best validation metric, trained if missing."""
    output = folder / "result.json"
    folder.mkdir(parents=True, exist_ok=True)
    rows = splits.load_rows(task, config.data, config.seed)
    is_classifier = task.head in ("classification", "regression")
    prepare = _texts if is_classifier else _tokens
    script, flags, score = prepare(config, task, rows, folder)
    flags = [*peer_flags(config), *flags, f"--output={output}"]
    asked = {"flags": flags, "examples": _digest(folder)}
    kept = folder / "asked.json"
    if not kept.exists() or json.loads(kept.read_text()) != asked:
        subprocess.run([python, PEERS / script, *flags], check=True)
        kept.write_text(json.dumps(asked, indent=1))
    return score(json.loads(output.read_text()))


def _digest(folder):
    """Returns a hash of each file with examples."""
    files = [*folder.glob("*.npz"), *folder.glob("*.jsonl")]
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(files)
    }


def _texts(config, task, rows, folder):
    """Returns a script, flags and a function from its report to the metric."""
    metric = task.metrics[0]
    flags = [f"--metric={metric}", f"--max_length={config.data.max_length}"]
    for split in ("train", "validation"):
        path = folder / f"{split}.jsonl"
        peer_rows.write(rows[split], task.text_fields, path)
        flags.append(f"--{split}={path}")
    return "adapters_train.py", flags, lambda report: report["best"][metric]


def _tokens(config, task, rows, folder):
    """Returns the same for a head that reads tokens, or choices."""
    encoder, tokenizer = load.load_encoder(config.encoder)
    packer = packing.TextPacker(
        tokenizer, config.data.max_length, encoder.takes_segments
    )
    head = heads.for_task(task, config.data.doc_stride)
    outputs = head.make_layer().num_outputs if task.head != "choice" else 1
    flags = [f"--head={task.head}", f"--outputs={outputs}"]
    for split in ("train", "validation"):
        path = folder / f"{split}.npz"
        encoded = head.encode(rows[split], task.text_fields, packer)
        peer_rows.write_encoded(encoded, path)
        flags.append(f"--{split}={path}")
    flags.append(f"--pad_token_id={packer.special_tokens.pad}")

    def score(report):
        return max(
            head.evaluate(
                task.metrics[:1],
                peer_rows.read_outputs(folder / epoch["outputs"], encoded),
                encoded.targets,
                encoded.source,
            )[task.metrics[0]]
            for epoch in report["epochs"]
        )

    return "adapters_train_heads.py", flags, score


def compare(run_folder, arguments):
    """Returns our and the library's selecting metric of one run."""
    result = earlier_runs.read_result(run_folder)
    if result is None:
        raise ValueError(f"{run_folder} is not the folder of a finished run.")
    config = resolve.load_config(Path(run_folder) / "config.yaml")
    task = task_data.get_task(config)
    folder = Path(arguments.model_dir) / Path(run_folder).name
    metric = task.metrics[0]
    ours = result["validation"][metric]
    theirs = train_peer(config, task, folder, arguments.peer_python)
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
