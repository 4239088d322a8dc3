"""Reads damaged files with every reader, and counts what happens.

    python -m tests.fuzz.run --seconds=1200            # `make fuzz`
    python -m tests.fuzz.run --reader=PEFT --seed=7    # other inputs
    python -m tests.fuzz.run --write                   # docs/reliability.md

An input is a folder with one or two damaged files. It has to be refused with a
`UserError`, or read within 20 seconds of the processor and 2 GB; files that
mean the same, and files with a checksum, have to give the answer of the
undamaged folder. Anything else is a fault: the input is kept in
`tests/fuzz/cases`, which the tests read again, and the status is 1.

The same command goes on where it stopped, and reads inputs that were faults
again. The files in `--folder` say what happened to each input.
"""

import argparse
import os
from pathlib import Path
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from tests.fuzz import campaign
from tests.fuzz import table
from tests.fuzz.outcomes import Outcomes
from tests.fuzz.readers import READERS


def main():
    options = _options()
    folder = Path(options.folder)
    names = [name for name in READERS if options.reader in name]
    end, faults = time.monotonic() + options.seconds, 0
    for number, name in enumerate(names):
        # Time that one reader leaves is for the later ones.
        seconds = (end - time.monotonic()) / (len(names) - number)
        outcomes = Outcomes(table.file_of(folder, name, options.seed))
        campaign.run(name, outcomes, options.inputs, seconds, options.seed)
        print(f"{name}: {table.line(outcomes.count())}", flush=True)
        faults += outcomes.count().faults
    if options.write:
        table.write(folder)
    return faults > 0


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--reader", default="", help="part of readers' names")
    parser.add_argument("--inputs", type=int, default=20_000, help="a reader")
    parser.add_argument("--seconds", type=float, default=1e9, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", default="build/fuzz")
    parser.add_argument("--write", action="store_true", help="write the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
