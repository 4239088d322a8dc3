"""Sends hostile requests to every signature of every kind of output.

    python -m tests.served.run --requests=10000 --write

Requests have wrong lengths, shapes, types, ids and bytes. Each must be refused,
or each of its rows must be answered as if it were alone, within 1e-5. The
status is 1 if an answer is wrong. `--write` writes docs/reliability.md.

The same command goes on where it stopped, and sends requests with wrong answers
again. The files in `--folder` say what happened to each request.
"""

import argparse
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

from tests.fuzz import outcomes as outcomes_lib
from tests.served import models
from tests.served import table
from tests.served import trial


def main():
    options = _options()
    kinds = [kind for kind in models.KINDS if options.kind in kind]
    end, counts = time.monotonic() + options.seconds, {}
    for number, kind in enumerate(kinds):
        found = {
            **models.signatures_of(kind),
            "ONNX": models.onnx_file(kind),
        }
        left = (end - time.monotonic()) / (len(kinds) - number)
        for name, signature in found.items():
            stop = time.monotonic() + left / len(found)
            path = Path(options.folder) / kind / f"{name}.{options.seed}.txt"
            outcomes = outcomes_lib.Outcomes(path)
            _send(signature, outcomes, options, stop)
            counts[f"{kind}, `{name}`"] = outcomes.count()
            print(kind, name, outcomes.count(), flush=True)
    if options.write:
        table.write(counts, options.seed)
    return any(count.faults for count in counts.values())


def _send(signature, outcomes, options, stop):
    for number in outcomes.left(options.requests):
        if time.monotonic() > stop:
            return
        outcomes.begin(number)
        try:
            is_answered = trial.run(signature, number, options.seed)
            outcome = outcomes_lib.READ if is_answered else outcomes_lib.REFUSED
        except Exception as error:
            outcome = outcomes_lib.FAULT
            print(f"request {number}: {type(error).__name__} {error!s:.2000}")
        outcomes.note(number, outcome)


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kind", default="", help="part of a kind of output")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=1e9, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default="build/hostile")
    parser.add_argument("--write", action="store_true", help="write the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
