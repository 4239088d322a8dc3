"""Attacks a server with several clients, while another checks its answers."""

import collections
from concurrent import futures
import threading
import time

from tests.hostile import attacks
from tests.hostile import client
from tests.serving import live
from tests.serving import served

_ASKED = ("films", "words", "pairs")


class Watch:
    """Asks adapters in turn until it is stopped, and checks each answer.

    Attributes:
        right: Number of right answers.
        wrong: List of what else came.
        longest: Seconds that the slowest right answer took.
    """

    def __init__(self, server, expected):
        self.right, self.wrong, self.longest = 0, [], 0.0
        self._server, self._expected = server, expected
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._is_done.set()
        self._thread.join()

    def _run(self):
        while not self._is_done.is_set():
            name = _ASKED[self.right % len(_ASKED)]
            start = time.monotonic()
            try:
                response = self._server.predict(name, [served.KINDS[name][2]])
            except (OSError, ValueError) as error:
                response = 0, repr(error)
            if live.is_own(response, self._expected[name]):
                self.right += 1
                self.longest = max(self.longest, time.monotonic() - start)
            else:
                self.wrong.append((name, response))


def attack(server, numbers, seed, clients=8):
    """Sends attacks, and counts what becomes of them.

    Args:
        server: `live.Server`.
        numbers: Numbers of the attacks.
        seed: Integer. Number and seed say which attack is drawn.
        clients: Number of attacks at a time.

    Returns:
        Dict from the kind of attack to a `Counter` of "refused", "answered",
        "closed" and "wrong", and list of what is wrong.
    """
    counts = {kind: collections.Counter() for kind in attacks.KINDS}
    faults = []

    def one(number):
        drawn = attacks.draw(number, seed)
        try:
            counts[drawn.kind][client.send(drawn, server.port)] += 1
        except (AssertionError, OSError, ValueError) as error:
            counts[drawn.kind]["wrong"] += 1
            faults.append((number, drawn.kind, repr(error)[:2_000]))

    with futures.ThreadPoolExecutor(clients) as threads:
        list(threads.map(one, numbers))
    return counts, faults
