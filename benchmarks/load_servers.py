"""Servers under load, in processes of their own."""

from pathlib import Path
import shutil
import signal
import socket
import subprocess
import sys

ROOT = Path(__file__).parents[1]


class Server:
    """A server in processes of its own.

    Args:
        command: List of strings. `--port` is added. The process prints a line
            that begins with "Serving" when it serves.
        names: Names of the adapters to ask.

    Attributes:
        port: Port on this machine's loopback.
    """

    def __init__(self, command, names):
        self.names = names
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self._process = subprocess.Popen(
            [*map(str, command), f"--port={self.port}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def wait(self):
        """Waits until the server says that it serves."""
        for line in self._process.stdout:
            if line.startswith("Serving"):
                return
        raise SystemExit("The server did not start.")

    def megabytes(self, part=""):
        """Returns the memory of the server's processes, in MB.

        Args:
            part: Part of the command of the processes that count.
        """
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,rss=,args="],
            capture_output=True,
            text=True,
        ).stdout
        rows = [line.split(maxsplit=3) for line in listed.splitlines()]
        parents = {pid: parent for pid, parent, *_ in rows}

        def is_ours(pid):
            while pid in parents and pid != str(self._process.pid):
                pid = parents[pid]
            return pid == str(self._process.pid)

        sizes = [
            int(rss)
            for pid, _, rss, args in rows
            if part in args and is_ours(pid)
        ]
        return sum(sizes) / 1e3

    def end(self):
        """Ends the server, and waits for its end."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(120)


def serve(folder, names, extra):
    """Starts a live server of some adapters of a folder.

    Args:
        folder: Path of the folder that `load_adapters.write` has filled.
        names: Names of the adapters.
        extra: Number of further adapters for which there is room.
    """
    runs = folder / f"served_{len(names)}_{names[0]}"
    runs.mkdir()
    for name in names:
        shutil.copytree(folder / "runs" / name, runs / name)
    command = [
        *(sys.executable, "-m", "tf_adapters", "serve", runs),
        *(f"--capacity={len(names) + extra}", f"--allow_sources={folder}"),
    ]
    return Server(command, names)
