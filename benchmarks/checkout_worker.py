"""Runs the steps of one checkout on command: see `against_checkout.py`.

python benchmarks/checkout_worker.py --checkout=<folder> --data_dir=<folder>
"""

import argparse
import json
from pathlib import Path
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, required=True)
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--task", default="sst2")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--examples", type=int, default=320)
    arguments = parser.parse_args()
    output, sys.stdout = sys.stdout, sys.stderr
    # Whatever is installed, the package and the benchmark are the checkout's.
    sys.path[0] = str(arguments.checkout / "benchmarks")
    from train_throughput import Ours

    ours = Ours(
        arguments.task,
        arguments.data_dir,
        arguments.precision,
        arguments.examples,
    )
    print(json.dumps({"ready": True}), file=output, flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        seconds = ours.do(command["do"], command["steps"])
        answer = {"seconds": seconds * command["steps"]}
        print(json.dumps(answer), file=output, flush=True)


if __name__ == "__main__":
    main()
