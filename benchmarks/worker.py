"""A process that runs steps on command, and waits without using a core."""

import json
import subprocess


class Worker:
    """One side of a comparison in a process of its own.

    Args:
        command: List of strings. The process prints a JSON line when it is
            ready, and answers each JSON line with one.

    Attributes:
        first: Content of the line that the process printed when it was ready.
    """

    def __init__(self, command):
        self.process = subprocess.Popen(
            list(map(str, command)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first = self._read()

    def _read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("A worker ended; see its message above.")
        return json.loads(line)

    def do(self, what, steps):
        """Returns the answer to `{"do": what, "steps": steps}`."""
        command = json.dumps({"do": what, "steps": steps})
        print(command, file=self.process.stdin, flush=True)
        return self._read()

    def stop(self):
        self.process.stdin.close()
        self.process.wait()
