"""Peak memory of training steps on a processor, next to `adapters` and PEFT.

    python benchmarks/peak_memory.py --peer_python=.venv-peer/bin/python

Each number is the most memory that a process has had after three steps, with
its libraries: an encoder of random weights in float32, 32 texts of 128 tokens.
LoRA is compared with PEFT, Houlsby's and Pfeiffer's adapters with `adapters`.
AdapterBias has no peer. Without a path for `--peer_python`, none has one.
"""

import argparse
import json
from pathlib import Path
import subprocess
import sys

import measurements
import memory_worker

HERE = Path(__file__).parent
PEERS = {"houlsby": "adapters", "pfeiffer": "adapters", "lora": "PEFT"}


def gigabytes(command):
    """Runs a worker; returns the peak that its line of JSON says, in GB."""
    done = subprocess.run(
        list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])["peak_bytes"] / 1e9


def ours(method, *options):
    """Returns our peak in GB, for a method on a BERT-base."""
    command = [sys.executable, HERE / "memory_worker.py", "--shape=bert_base"]
    return gigabytes([*command, "--steps=3", f"--method={method}", *options])


def theirs(method, python):
    """Returns the peer's peak in GB, for a method on a BERT-base."""
    case = {"shape": "bert_base", "method": method, "precision": "float32"}
    case = json.dumps({**case, "tokens": 128, "batch": 32})
    command = [python, HERE / "peers" / "gpu_worker.py", "--device=cpu"]
    return gigabytes([*command, "--steps=1", "--turns=1", case])


def rematerialized(method, again, own):
    """Returns the row of a method with `train.remat`."""
    case, other = f"{method}, `train.remat`", "without it"
    return measurements.row(case, "GB", [again], [own], other)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer_python", default=".venv-peer/bin/python")
    parser.add_argument("--methods", default=",".join(memory_worker.METHODS))
    measurements.add_option(parser)
    arguments = parser.parse_args()
    print("| method | ours, GB | with `train.remat` | theirs | ratio |")
    print("|---|---|---|---|---|")
    for method in arguments.methods.split(","):
        own, again = ours(method), ours(method, "--remat")
        rows = [rematerialized(method, again, own)]
        cells = ["", ""]
        if method in PEERS and arguments.peer_python:
            peer = theirs(method, arguments.peer_python)
            found = method, "GB", [own], [peer], PEERS[method]
            rows.append(measurements.row(*found))
            cells = [f"{peer:.2f}", f"{own / peer:.2f}"]
        row = [method, f"{own:.2f}", f"{again:.2f}", *cells]
        print(f"| {' | '.join(row)} |", flush=True)
        measurements.write(arguments.output, rows)


if __name__ == "__main__":
    main()
