"""The live server under load: many adapters, clients, changes.

    python benchmarks/serving_load.py
    python benchmarks/serving_load.py --adapters=8,1000 --seconds=5 --turns=3

A server for each number of adapters, and one with a head alone (`bare`), run on
this machine's loopback with `minilm`. Adapters are of the given methods in
turn, with random weights and heads of two labels. Clients ask in a closed loop,
each for a text of the given length by an adapter that is drawn uniformly or
with exponent 1.1 (zipf). The servers take turns, and the spread is over the
turns. Each answer is compared with what its own adapter answers without bank
and server.

With `changes`, another client meanwhile loads adapters under new names, asks
them, replaces them by others and unloads them, on and on.
"""

import argparse
import collections
import http.client
import json
import os
from pathlib import Path
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")  # As train.py does.
sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parent)]

from bank_speed import KINDS  # noqa: E402
from bank_speed import make_models  # noqa: E402
import measurements  # noqa: E402
import numpy as np  # noqa: E402

ROOT = Path(__file__).parents[1]
WORDS = "the film is a fine story of good people who never give up".split()
# Answers have five decimals.
TOLERANCE = 2e-5


def make_texts(tokens, number=8):
    """Returns texts of so many tokens; each word is one token."""
    generator = np.random.default_rng(0)
    words = [generator.choice(WORDS, tokens - 2) for _ in range(number)]
    return [" ".join(row) for row in words]


def write_adapters(folder, kinds, number, texts):
    """Writes adapters, and returns the answers of each when it is alone.

    Returns:
        Dict from the name of an adapter to a list with the probability of the
        first class of each text.
    """
    from safetensors.numpy import load_file
    from safetensors.numpy import save_file

    import tf_adapters

    encoder, tokenizer = tf_adapters.load_encoder("minilm")
    packer = tf_adapters.TextPacker(tokenizer, max_length=128)
    features = packer(texts)
    generator, answers = np.random.default_rng(0), {}
    for place, kind in enumerate(kinds):
        (model,) = make_models(encoder, [kind])
        first = folder / "first" / kind
        tf_adapters.save_adapter(model, first, {"max_length": 128})
        config = json.loads((first / "adapter_config.json").read_text())
        del config["weights_sha256"]  # The weights are others below.
        shapes = load_file(first / "adapter.safetensors")
        variables = model.trained_variables()
        call = graph_of(model)
        for index in range(place, number, len(kinds)):
            tensors = {
                name: x + 0.1 * generator.normal(size=x.shape).astype(x.dtype)
                for name, x in shapes.items()
            }
            name = f"adapter_{index}"
            (folder / "runs" / name).mkdir(parents=True)
            path = folder / "runs" / name / "adapter_config.json"
            path.write_text(json.dumps(config))
            save_file(tensors, path.with_name("adapter.safetensors"))
            for key, value in tensors.items():
                variables[key].assign(value)
            logits = np.asarray(call(features), "float64")
            answers[name] = 1 / (1 + np.exp(logits[:, 1] - logits[:, 0]))
        encoder.restore()
    return {name: values.tolist() for name, values in answers.items()}


def graph_of(model):
    """Returns a graph of a model that reads its variables when it is called."""
    import tensorflow as tf

    return tf.function(lambda inputs: model(inputs, training=False))


class Server:
    """A server of the first adapters of a folder, in processes of its own."""

    def __init__(self, folder, names, extra):
        self.names = names
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        runs = folder / f"served_{len(names)}_{names[0]}"
        runs.mkdir()
        for name in names:
            shutil.copytree(folder / "runs" / name, runs / name)
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "tf_adapters", "serve", str(runs)),
                *(f"--port={self.port}", f"--capacity={len(names) + extra}"),
                f"--allow_sources={folder}",
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self):
        """Waits until the server says that it serves."""
        for line in self.process.stdout:
            if line.startswith("Serving"):
                return
        raise SystemExit("The server did not start.")

    def megabytes(self):
        """Returns the memory of the process that computes, in MB."""
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,rss=,args="],
            capture_output=True,
            text=True,
        ).stdout
        rows = [line.split(maxsplit=3) for line in listed.splitlines()]
        parents = {pid: parent for pid, parent, *_ in rows}

        def is_ours(pid):
            while pid in parents and pid != str(self.process.pid):
                pid = parents[pid]
            return pid == str(self.process.pid)

        sizes = [
            int(rss)
            for pid, _, rss, args in rows
            if ":engine" in args and is_ours(pid)
        ]
        return sum(sizes) / 1e3

    def end(self):
        """Ends the server, and waits for its end."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(120)


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


def ask(server, workload, arguments, texts, answers, seconds, changed=None):
    """Lets all clients ask for a time.

    Returns:
        List of the seconds that each request took, and a `Counter` of right
        and wrong answers.
    """
    weights = np.arange(1, len(server.names) + 1) ** (
        -1.1 if workload == "zipf" else 0.0
    )
    latencies, counts = [], collections.Counter()
    end = time.perf_counter() + seconds

    def loop(seed):
        client, generator = Client(server.port), np.random.default_rng(seed)
        drawn = generator.choice(
            len(weights), 10_000, p=weights / weights.sum()
        )
        for number, place in enumerate(drawn):
            start = time.perf_counter()
            if start > end:
                break
            name, text = server.names[place], number % len(texts)
            right = client.is_right(name, texts[text], answers[name][text])
            latencies.append(time.perf_counter() - start)
            counts[right] += 1
        client.close()

    threads = [
        threading.Thread(target=loop, args=(seed,))
        for seed in range(arguments.clients)
    ]
    if changed is not None:
        change = lambda: changed(server, texts, answers, end, counts)  # noqa: E731
        threads.append(threading.Thread(target=change))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return latencies, counts


def change_adapters(folder):
    """Returns a function that loads, replaces and unloads adapters."""

    def change(server, texts, answers, end, counts):
        client, number = Client(server.port), 0
        names = list(answers)
        while time.perf_counter() < end:
            new = f"new_{number % 4}"
            path = f"/v2/repository/models/{new}"
            for step in (0, 1):
                name = names[(number + step) % len(names)]
                source = {"source": str(folder / "runs" / name)}
                client.post(f"{path}/load", {"parameters": source})
                right = client.is_right(new, texts[0], answers[name][0])
                counts["right" if right else "wrong", "after load"] += 1
                time.sleep(0.05)
            client.post(f"{path}/unload", {})
            status, _ = client.post(
                f"/v1/models/{new}:predict", {"instances": texts[:1]}
            )
            counts["404" if status == 404 else "wrong", "after unload"] += 1
            number += 1
        client.close()

    return change


def measure(servers, arguments, texts, answers, folder):
    """Lets the servers take turns, and prints a line for each measurement."""
    cases = [
        (name, workload, changes)
        for name in servers
        for workload in arguments.workloads.split(",")
        for changes in (False, True)
        if name != "bare" or (workload == "zipf" and not changes)
    ]
    found = collections.defaultdict(list)
    counts = collections.Counter()
    for server in servers.values():
        ask(server, "zipf", arguments, texts, answers, 2)
    for _ in range(arguments.turns):
        for case in cases:
            name, workload, changes = case
            latencies, counted = ask(
                *(servers[name], workload, arguments, texts, answers),
                arguments.seconds,
                change_adapters(folder) if changes else None,
            )
            counts.update(counted)
            found[case].append(
                (
                    len(latencies) / arguments.seconds,
                    *np.percentile(latencies, (50, 99)),
                )
            )
    measurements.write(arguments.output, rows_of(found))
    print("adapters  load     changes  texts/s        p50 ms   p99 ms")
    for (name, workload, changes), rows in found.items():
        speed, middle, last = np.median(rows, axis=0)
        low, high = np.percentile([row[0] for row in rows], (25, 75))
        print(
            f"{name:>8}  {workload:7}  {'yes' if changes else 'no':7}  "
            f"{speed:6.1f} ± {(high - low) / 2:4.1f}  {1e3 * middle:7.1f}  "
            f"{1e3 * last:7.1f}"
        )
    print(f"answers: {dict(counts)}")
    for name, server in servers.items():
        print(f"{name} adapters: {server.megabytes():.0f} MB")


def rows_of(found):
    """Returns rows of speeds and of the 99th percentile of the latencies.

    Args:
        found: Dict from server, workload and whether adapters change, to one
            tuple for each turn: texts/s, median latency, and 99th percentile.
    """
    bare, rows = np.transpose(found["bare", "zipf", False]), []
    for (name, workload, changes), turns in found.items():
        if name == "bare":
            continue
        speeds, _, last = np.transpose(turns)
        case = f"{name} adapters, {workload}{', changing' if changes else ''}"
        peer = "a server with a head alone"
        rows += [
            measurements.row(
                case, "texts/s", speeds, bare[0], peer, more_is_better=True
            ),
            measurements.row(
                f"{case}, p99", "ms", 1e3 * last, 1e3 * bare[2], peer
            ),
        ]
    return rows


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--adapters", default="8,1000")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--workloads", default="zipf,uniform")
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--turns", type=int, default=5)
    measurements.add_option(parser)
    arguments = parser.parse_args()
    # So that the servers end with this process.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    numbers = list(map(int, arguments.adapters.split(",")))
    texts = make_texts(arguments.tokens)
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        kinds = arguments.kinds.split(",")
        answers = write_adapters(folder, kinds, max(numbers), texts)
        bare = write_adapters(folder / "bare", ["head_only"], 1, texts)
        shutil.move(folder / "bare/runs/adapter_0", folder / "runs/bare")
        answers["bare"] = bare["adapter_0"]
        names = [f"adapter_{index}" for index in range(max(numbers))]
        servers = {
            str(number): Server(folder, names[:number], extra=16)
            for number in numbers
        }
        servers["bare"] = Server(folder, ["bare"], extra=1)
        try:
            for server in servers.values():
                server.wait()
            measure(servers, arguments, texts, answers, folder)
        finally:
            for server in servers.values():
                server.end()


if __name__ == "__main__":
    main()
