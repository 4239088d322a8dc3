"""Clients that ask a server in a closed loop, and compare each answer."""

import collections
import dataclasses
import http.client
import itertools
import json
import threading
import time

import numpy as np

# Answers have five decimals.
TOLERANCE = 2e-5


@dataclasses.dataclass(frozen=True)
class Load:
    """What clients ask, and for how long.

    Attributes:
        texts: List of texts.
        answers: Dict from the name of an adapter to the probability of the
            first class of each text.
        clients: Number of clients. Each asks again when it has an answer.
        seconds: Time after which clients do not ask any more.
        requests: Number of requests after which they do not ask any more, or
            `None`.
    """

    texts: list
    answers: dict
    clients: int = 16
    seconds: float = 5.0
    requests: int | None = None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What clients have seen.

    Attributes:
        seconds: Time that passed.
        latencies: Seconds that each request took.
        counts: `Counter` of right (`True`) and wrong (`False`) answers.
    """

    seconds: float
    latencies: list
    counts: collections.Counter

    def figures(self):
        """Returns texts a second, and the median and p99 of the seconds."""
        middle, last = np.percentile(self.latencies, (50, 99))
        return len(self.latencies) / self.seconds, middle, last


class Client:
    """A connection to a server."""

    def __init__(self, port):
        self._connection = http.client.HTTPConnection("127.0.0.1", port, 60)

    def post(self, path, content):
        """Returns the status and the content of the response."""
        self._connection.request("POST", path, json.dumps(content))
        response = self._connection.getresponse()
        return response.status, json.loads(response.read())

    def is_right(self, name, text, wanted):
        """Returns whether an adapter's answer is its own."""
        path = f"/v1/models/{name}:predict"
        status, content = self.post(path, {"instances": [text]})
        if status != 200:
            return False
        found = content["predictions"][0]["probabilities"]["no"]
        return abs(found - wanted) < TOLERANCE

    def close(self):
        """Closes the connection."""
        self._connection.close()


def ask(server, workload, load, changed=None):
    """Lets all clients ask, each by adapters of its own draw.

    Args:
        server: Object with a `port` and the `names` of adapters.
        workload: `"zipf"` or `"uniform"`.
        load: `Load`.
        changed: Function that changes adapters meanwhile, see
            `change_adapters`. Default: none.

    Returns:
        An `Outcome`.
    """
    weights = np.arange(1, len(server.names) + 1) ** (
        -1.1 if workload == "zipf" else 0.0
    )
    latencies, counts, tickets = [], collections.Counter(), itertools.count()
    start = time.perf_counter()
    end = start + load.seconds

    def is_open():
        return time.perf_counter() < end and (
            load.requests is None or next(tickets) < load.requests
        )

    def loop(seed):
        client, generator = Client(server.port), np.random.default_rng(seed)
        drawn = generator.choice(
            len(weights), 10_000, p=weights / weights.sum()
        )
        for number, place in enumerate(itertools.cycle(drawn.tolist())):
            if not is_open():
                break
            begun = time.perf_counter()
            name, text = server.names[place], number % len(load.texts)
            wanted = load.answers[name][text]
            right = client.is_right(name, load.texts[text], wanted)
            latencies.append(time.perf_counter() - begun)
            counts[right] += 1
        client.close()

    askers = [
        threading.Thread(target=loop, args=(seed,))
        for seed in range(load.clients)
    ]
    done = threading.Event()
    changer = threading.Thread(
        target=lambda: changed and changed(server, load, done, counts)
    )
    for thread in (*askers, changer):
        thread.start()
    for thread in askers:
        thread.join()
    seconds = time.perf_counter() - start
    done.set()
    changer.join()
    return Outcome(seconds, latencies, counts)


def change_adapters(folder):
    """Returns a function that loads, replaces and unloads adapters.

    Args:
        folder: Path of the folder that `load_adapters.write` has filled.
    """

    def change(server, load, done, counts):
        client, number = Client(server.port), 0
        names = list(load.answers)
        while not done.is_set():
            new = f"new_{number % 4}"
            path = f"/v2/repository/models/{new}"
            for step in (0, 1):
                name = names[(number + step) % len(names)]
                source = {"source": str(folder / "runs" / name)}
                client.post(f"{path}/load", {"parameters": source})
                right = client.is_right(
                    new, load.texts[0], load.answers[name][0]
                )
                counts["right" if right else "wrong", "after load"] += 1
                time.sleep(0.05)
            client.post(f"{path}/unload", {})
            status, _ = client.post(
                f"/v1/models/{new}:predict", {"instances": load.texts[:1]}
            )
            counts["404" if status == 404 else "wrong", "after unload"] += 1
            number += 1
        client.close()

    return change
