"""A small HTTP server for the peers of the live server.

It has the standard library's server, and puts requests that wait into one
batch, as the live server does. `serving_peers.py` drives it.
"""

from concurrent import futures
import contextlib
import http.server
import json
import queue
import re
import threading

_PATH = re.compile(r"/v1/models/([^/]+):predict")


class Batches:
    """Collects requests of several threads, and answers them together.

    A batch consists of the requests that wait when the one before has ended.

    Args:
        answer: Function from a list of pairs of an adapter's name and a text to
            a list of the probabilities of the first class.
        max_texts: Maximum number of texts of a batch.
    """

    def __init__(self, answer, max_texts=64):
        self._answer, self._max_texts = answer, max_texts
        self._waiting = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def ask(self, name, text):
        """Returns the probability of the first class."""
        found = futures.Future()
        self._waiting.put((name, text, found))
        return found.result()

    def _run(self):
        while True:
            batch = self._collect()
            answers = self._answer([(name, text) for name, text, _ in batch])
            for (_, _, found), answer in zip(batch, answers, strict=True):
                found.set_result(answer)

    def _collect(self):
        batch = [self._waiting.get()]
        with contextlib.suppress(queue.Empty):
            while len(batch) < self._max_texts:
                batch.append(self._waiting.get_nowait())
        return batch


def serve(port, answer):
    """Serves until the process ends.

    Args:
        port: Port on this machine's loopback.
        answer: See `Batches`.
    """
    batches = Batches(answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"  # Connections stay open.
        wbufsize = -1  # One packet for each response.
        disable_nagle_algorithm = True

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            (text,) = json.loads(body)["instances"]
            name = _PATH.fullmatch(self.path)[1]
            first = batches.ask(name, text)
            probabilities = {"no": first, "yes": 1 - first}
            content = {"predictions": [{"probabilities": probabilities}]}
            self._send(json.dumps(content).encode())

        def _send(self, content):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    print("Serving", flush=True)
    server.serve_forever()


def by_name(asked):
    """Returns a dict from name to the indices of its texts in a batch."""
    places = {}
    for place, (name, _) in enumerate(asked):
        places.setdefault(name, []).append(place)
    return places
