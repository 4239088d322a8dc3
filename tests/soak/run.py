"""Disturbs many short runs, and compares each with an undisturbed one.

    python -m tests.soak.run --trials=500          # `make soak N=500`
    python -m tests.soak.run --trials=500 --write  # docs/reliability.md, too

Runs the trials with Keras's backend: those with JAX if the environment variable
`KERAS_BACKEND` is `jax`. Trials that are in `<folder>/trials.jsonl` are not
repeated, so the same command goes on where it was stopped. The status is 1 if a
run did not end the same.
"""

import argparse
import json
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
# Processes of JAX share what they compile.
os.environ["JAX_COMPILATION_CACHE_DIR"] = os.path.abspath("build/soak/jax")
os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0"

from tests.soak import kinds
from tests.soak import settings
from tests.soak import table
from tests.soak import trial


def main():
    options = _options()
    space = Path(options.folder)
    space.mkdir(parents=True, exist_ok=True)
    settings.write_data(space / "data")
    path = space / "trials.jsonl"
    records = _read(path, options.seed)
    end = time.monotonic() + options.seconds
    backend = os.environ.get("KERAS_BACKEND", "tensorflow")
    for number in kinds.numbers(options.trials, backend):
        if number not in records and time.monotonic() < end:
            records[number] = trial.run(number, options.seed, space.absolute())
            with path.open("a") as file:
                file.write(json.dumps(records[number]) + "\n")
            _print(records[number])
    if options.write:
        table.write(list(records.values()), options.seed)
    return any(record["wrong"] for record in records.values())


def _read(path, seed):
    """Returns a dict from the numbers of earlier trials to their records."""
    lines = path.read_text().splitlines() if path.exists() else []
    records = map(json.loads, lines)
    return {one["number"]: one for one in records if one["seed"] == seed}


def _print(record):
    what = f"{kinds.kind_of(record['number']).name}, {record['flags']}"
    print(
        f"{record['number']}: {what}; {', '.join(record['faults'])}: "
        f"{record['wrong'] or 'the same'} ({record['seconds']} s)",
        flush=True,
    )


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1e9, help="then stop")
    parser.add_argument("--folder", default="build/soak")
    parser.add_argument("--write", action="store_true", help="write the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
