"""Runs `tf-adapters serve` in processes of its own, for tests over HTTP."""

import http.client
import json
import os
from pathlib import Path
import socket
import subprocess
import sys
import threading
import time

from tests.serving import served

ROOT = Path(__file__).parents[2]
TOKEN = "s3cret"


def free_port():
    """Returns a port of this machine that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def is_own(response, wanted):
    """Returns whether a response has the answer of the asked adapter."""
    status, content = response
    return status == 200 and served.close(content["predictions"], [wanted])


class Server:
    """A running server; `ask` sends it a request on a new connection.

    Args:
        *arguments: Arguments of `tf-adapters serve`, without the port.
        before: List of a command that runs the server's command.
        env: Dict of environment variables to set.
    """

    def __init__(self, *arguments, before=(), env=None):
        self.port = free_port()
        command = [sys.executable, "-m", "tf_adapters", "serve", *arguments]
        self.process = subprocess.Popen(
            [*before, *command, f"--port={self.port}"],
            cwd=ROOT,
            env={
                **os.environ,
                "TF_ADAPTERS_SERVER_TOKEN": TOKEN,
                **(env or {}),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.printed = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        self.printed += iter(self.process.stdout.readline, "")

    def wait(self, seconds=240):
        """Waits until the server says that it serves."""
        deadline = time.monotonic() + seconds
        while not any("Serving" in line for line in self.printed):
            assert self.process.poll() is None, "".join(self.printed)
            assert time.monotonic() < deadline, "".join(self.printed)
            time.sleep(0.2)

    def ask(self, path, content=None, method="POST"):
        """Returns the status and the content of the response."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, 60)
        body = None if content is None else json.dumps(content)
        headers = {"Authorization": f"Bearer {TOKEN}"}
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def predict(self, name, instances):
        """Asks an adapter about instances."""
        path = f"/v1/models/{name}:predict"
        return self.ask(path, {"instances": instances})

    def processes(self, part):
        """Returns the ids of the server's processes of a deployment.

        Args:
            part: Part of the processes' commands: `":engine"` or `":gateway"`.
        """
        return processes_of(self.process.pid, part)


def processes_of(server, part):
    """Returns the ids of the processes of a server's deployment.

    Args:
        server: Id of the server's process.
        part: See `Server.processes`.
    """
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,args="], capture_output=True, text=True
    ).stdout.splitlines()
    parents = {int(line.split()[0]): int(line.split()[1]) for line in listed}

    def is_ours(pid):
        while pid in parents and pid != server:
            pid = parents[pid]
        return pid == server

    found = [int(line.split()[0]) for line in listed if part in line]
    return [pid for pid in found if is_ours(pid)]
