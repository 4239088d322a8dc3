"""Sends hostile requests to every signature of every kind of output.

    python -m tests.served.run --requests=10000 --write

Requests have wrong lengths, shapes, types, ids and bytes. Each must be refused,
or each of its rows must be answered as if it were alone, within 1e-5. The
status is 1 if an answer is wrong. `--write` writes docs/reliability.md.
"""

import argparse
import collections
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

from tests.served import models  # noqa: E402
from tests.served import table  # noqa: E402
from tests.served import trial  # noqa: E402


def main():
    options = _options()
    kinds = [kind for kind in models.KINDS if options.kind in kind]
    end, counts = time.monotonic() + options.seconds, {}
    for number, kind in enumerate(kinds):
        found = models.signatures_of(kind)
        if options.onnx in kind:
            found = {**found, "ONNX": models.onnx_file(kind)}
        left = (end - time.monotonic()) / (len(kinds) - number)
        for name, signature in found.items():
            stop = time.monotonic() + left / len(found)
            count = _count(signature, options, stop)
            counts[f"{kind}, `{name}`"] = count
            print(kind, name, dict(count), flush=True)
    if options.write:
        table.write(counts, options.seed)
    return any(count["wrong"] for count in counts.values())


def _count(signature, options, stop):
    count = collections.Counter()
    for number in range(options.requests):
        if time.monotonic() > stop:
            break
        try:
            is_answered = trial.run(signature, number, options.seed)
            count["answered" if is_answered else "refused"] += 1
        except Exception as error:
            count["wrong"] += 1
            print(f"request {number}: {type(error).__name__} {error!s:.2000}")
    return count


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--kind", default="", help="part of a kind of output")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=1e9, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--onnx", default="", help="part of the kinds with an ONNX file, too"
    )
    parser.add_argument("--write", action="store_true", help="write the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
