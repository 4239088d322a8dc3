"""What a trial of the live server runs: a server, and a client that asks it."""

import http.client
import json
import sys
import time

from tests.soak.process import LIMIT

_ROUNDS = 20
# The exit status if the server ends while it is asked.
ENDED = 75
# Statuses while a process of the server is started again.
_LATER = (503, 504)


def serve_and_ask(names, folder):
    """Serves adapters, asks each of them, and stores all answers.

    Exits with `ENDED` if the server ends while it is asked, and with 1 and its
    message if it does not start.

    Args:
        names: Names of adapters in `served.KINDS`.
        folder: Path of a folder, which need not exist.
    """
    from tests.serving import live
    from tests.serving import served

    missing = [name for name in names if not _adapter(folder, name).exists()]
    if missing:
        served.write_adapters(folder / "served", missing)
    server = live.Server(str(folder / "served"))
    try:
        _wait(server)
        # Renamed, so that nobody reads an empty file.
        written = folder / "server.pid.part"
        written.write_text(str(server.process.pid))
        written.rename(folder / "server.pid")
        answers = _ask_all(server, names, folder)
        server.process.terminate()
        if server.process.wait(LIMIT) != 0:
            print(f"status {server.process.returncode}: {server.printed}")
            sys.exit(ENDED)
    finally:
        server.process.kill()
    (folder / "result.json").write_text(json.dumps(answers))


def _adapter(folder, name):
    return folder / "served" / name / "adapter"


def _wait(server):
    try:
        server.wait(LIMIT)
    except AssertionError:
        sys.exit("".join(server.printed))


def _ask_all(server, names, folder):
    """Returns the answer of each adapter, which is the same each time."""
    from tests.serving.served import KINDS

    found = {}
    with (folder / "answers.jsonl").open("a") as file:
        for _ in range(_ROUNDS):
            for name in names:
                found[name] = _ask(server, name, KINDS[name][2])
                file.write(json.dumps({name: found[name]}) + "\n")
                file.flush()
    return found


def _ask(server, name, instance):
    """Asks until there is an answer: a process may be started again."""
    end = time.monotonic() + LIMIT / 2
    while time.monotonic() < end:
        if server.process.poll() is not None:
            sys.exit(ENDED)
        try:
            status, content = server.predict(name, [instance])
        except (OSError, http.client.HTTPException):
            status, content = _LATER[0], None
        if status == 200:
            return content["predictions"]
        if status not in _LATER:
            break
        time.sleep(0.2)
    return sys.exit(f"Error: {name} is not answered: {status} {content}")


def check_answers(folder, whole):
    """Raises an `AssertionError` if an answer is not the adapter's.

    A server that is started again may round differently.
    """
    from tests.serving import served

    wanted = json.loads((whole / "result.json").read_text())
    path = folder / "answers.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        for name, answer in json.loads(line).items():
            assert served.close(answer, wanted[name]), (name, answer)
