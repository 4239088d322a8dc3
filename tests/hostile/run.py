"""Sends hostile requests to the live server, while a client checks answers.

    python -m tests.hostile.run --requests=10000 --write

Each request must be refused or answered, or the connection closed; everything
else is wrong. Meanwhile, a client asks three adapters in turn, and compares
each answer with the adapter's own. The status is 1 if something is wrong.
`--write` writes docs/reliability.md.
"""

import argparse
import collections
import os
from pathlib import Path
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.

from tests.hostile import siege
from tests.hostile import table
from tests.serving import live
from tests.serving import served


def main():
    options = _options()
    with tempfile.TemporaryDirectory() as path:
        folder = served.write_adapters(Path(path))
        expected = {
            name: served.expected(folder, name)[0] for name in served.KINDS
        }
        server = live.Server(str(folder), f"--allow_sources={folder}")
        try:
            server.wait()
            before = _megabytes(server)
            with siege.Watch(server, expected) as watch:
                counts, faults = siege.attack(
                    server, range(options.requests), options.seed
                )
            after = _megabytes(server)
            server.process.terminate()
            status = server.process.wait(60)
        finally:
            server.process.kill()
    for fault in [*faults, *watch.wrong]:
        print(*fault)
    for kind, count in counts.items():
        print(kind, dict(count))
    print(
        f"meanwhile {watch.right} right answers, {len(watch.wrong)} wrong, the "
        f"slowest after {watch.longest:.2f} s; MB of memory before {before} "
        f"and after {after}; status {status} after SIGTERM"
    )
    if options.write:
        table.write(counts, watch, options.seed)
    return bool(faults or watch.wrong or status)


def _megabytes(server):
    """Returns a dict with the memory of the gateway and the engine."""
    found = collections.Counter()
    for part in (":gateway", ":engine"):
        for pid in server.processes(part):
            pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
            found[part] += pages * os.sysconf("SC_PAGE_SIZE") // 10**6
    return dict(found)


def _options():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write the table")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
