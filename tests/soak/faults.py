"""Faults that a run has to survive. Each is a function of a `Run`.

A fault starts the command once, does something to it, and returns a line if
the command answers with anything but what a person can act on.
"""

import builtins
import contextlib
import os
from pathlib import Path
import resource
import shutil
import signal
import sys
import time

from tests.fuzz import damaging
from tests.runs import whole_runs
from tests.soak import servers

_STOPPED = 75
_INTERRUPTED = 130
_DELAY = 0.05
_EVENTS = "tensorboard/*"


def _signal(kind, *statuses):
    def fault(run, chance):
        command = run.start()
        time.sleep(chance.uniform(0, run.seconds))
        command.send(kind)
        return _check(command, {0, -kind, *statuses})

    return fault


def _pause(run, chance):
    command = run.start()
    time.sleep(chance.uniform(0, run.seconds))
    command.send(signal.SIGSTOP)
    time.sleep(0.3)
    command.send(signal.SIGCONT)
    return _check(command, {0})


def _full_disk(run, chance):
    """No file may become longer than a random number of bytes."""
    size = int(2 ** chance.uniform(4, 17))

    def limit():
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))

    # The log of what it prints is a file, too.
    return _check(run.start(limit), {0, 1}, may_be_silent=True)


def _clock_jump(run, chance):
    """The clock jumps by up to a year, before and while the run trains."""
    jumps = [chance.uniform(-3e7, 3e7) for _ in range(3)]
    period = max(run.seconds / 3, _DELAY)

    def change():
        real, started = time.time, time.monotonic()

        def jumping():
            passed = int((time.monotonic() - started) / period)
            return real() + jumps[min(passed, 2)]

        time.time = jumping

    return _check(run.start(change), {0})


def _failed_import(run, chance):
    """One of the imports that are still ahead fails, as from a lost disk."""
    number = chance.randrange(40)

    def break_imports():
        real, left = builtins.__import__, [number]

        def failing(name, *rest):
            if name not in sys.modules:
                left[0] -= 1
                if left[0] < 0:
                    raise ImportError(f"{name} cannot be read")
            return real(name, *rest)

        builtins.__import__ = failing

    # What fails is not the library's, and its traceback says what.
    command = run.start(break_imports)
    command.wait()


def _two_processes(run, chance):
    first = run.start()
    time.sleep(chance.uniform(0, run.seconds / 2))
    second = run.start()
    return _check(first, {0, 1}) or _check(second, {0, 1})


def _damage(part):
    """Damages a file, after the command was killed as it trained.

    A finished run is not trained again, so its events are not damaged.
    """

    def fault(run, chance):
        command = run.start()
        time.sleep(chance.uniform(run.seconds / 3, run.seconds))
        command.send(signal.SIGKILL)
        command.wait()
        files = sorted(p for p in run.folder.glob(part) if p.is_file())
        is_finished = (run.folder / "result.json").exists()
        if not files or (is_finished and part == _EVENTS):
            return None
        path = chance.choice(files)
        before = run.folder.with_name("before")
        shutil.rmtree(before, ignore_errors=True)
        shutil.copytree(run.folder, before)
        # Half a file, which the signal may have left, is damaged enough.
        with contextlib.suppress(ValueError):
            damaging.draw_for(path, chance).apply(path.parent)
        command = run.start()
        wrong = _check(command, {0, 1})
        if not wrong and command.wait()[0] == 1:
            # As the message says: the file is restored.
            shutil.rmtree(run.folder)
            before.rename(run.folder)
        return wrong and f"{path.relative_to(run.folder)}: {wrong}"

    return fault


def _lost_worker(kind):
    """One of the workers gets a signal after the first steps."""

    def fault(run, chance):
        command = run.start()
        while command.is_alive() and whole_runs.steps_done(run.folder) < 1:
            time.sleep(_DELAY)
        time.sleep(chance.uniform(0, run.seconds))
        number = chance.randrange(2)
        if command.is_alive():
            children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
            workers = children.read_text().split()
            # One that has ended is not there any more.
            if number < len(workers):
                os.kill(int(workers[number]), kind)
        return _check(command, {0, _STOPPED})

    return fault


def _signal_to_server(kind, part=None):
    """A process of the live server gets a signal while a client asks it."""

    def fault(run, chance):
        path = run.folder / "server.pid"
        path.unlink(missing_ok=True)
        command = run.start()
        while command.is_alive() and not path.exists():
            time.sleep(_DELAY)
        time.sleep(chance.uniform(0, 1))
        for pid in _processes(path, part) if command.is_alive() else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
                if kind == signal.SIGSTOP:
                    time.sleep(chance.uniform(0, 5))
                    os.kill(pid, signal.SIGCONT)
        return _check(command, {0} if part else {0, servers.ENDED})

    return fault


def _processes(path, part):
    from tests.serving import live

    server = int(path.read_text())
    return live.processes_of(server, part) if part else [server]


def _damage_served(run, chance):
    """Weights are damaged before the server starts.

    Changed settings of an adapter are not noticed, as people may change them.
    """
    files = sorted((run.folder / "served").glob("*/adapter/*.safetensors"))
    if not files:
        return _check(run.start(), {0})
    path = chance.choice(files)
    before = path.read_bytes()
    damaging.draw_for(path, chance).apply(path.parent)
    command = run.start()
    wrong = _check(command, {0, 1})
    if not wrong and command.wait()[0] == 1:
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
        path.write_bytes(before)
    return wrong and f"{path.relative_to(run.folder)}: {wrong}"


def _check(command, statuses, may_be_silent=False):
    """Returns what is wrong with the end of a command, or `None`."""
    status, said = command.wait()
    if status not in statuses:
        return f"status {status}: {said[-500:]}"
    if "Traceback" in said:
        return f"a traceback: {said[-500:]}"
    if status == 1 and "Error" not in said and not may_be_silent:
        return f"no message: {said[-500:]}"
    return None


FAULTS = {
    "SIGKILL": _signal(signal.SIGKILL),
    "SIGTERM": _signal(signal.SIGTERM, _STOPPED),
    "Ctrl-C": _signal(signal.SIGINT, _INTERRUPTED),
    "a pause (SIGSTOP)": _pause,
    "a full disk": _full_disk,
    "jumps of the clock": _clock_jump,
    "an import that fails": _failed_import,
    "two processes": _two_processes,
    "a damaged checkpoint": _damage("checkpoints/*/*"),
    "damaged settings": _damage("*.yaml"),
    "a damaged result": _damage("result.json"),
    "damaged events": _damage(_EVENTS),
}
# For a user's own program, without a run folder.
FAULTS_OF_PROGRAMS = {
    **{
        name: FAULTS[name]
        for name in (
            *("SIGKILL", "a pause (SIGSTOP)", "a full disk"),
            *("jumps of the clock", "two processes"),
        )
    },
    "a damaged adapter": _damage("adapter/*"),
}
FAULTS_OF_WORKERS = {
    "a worker killed": _lost_worker(signal.SIGKILL),
    "a worker told to end": _lost_worker(signal.SIGTERM),
}
FAULTS_OF_SERVERS = {
    "the server killed": _signal_to_server(signal.SIGKILL),
    "the server told to end": _signal_to_server(signal.SIGTERM),
    "the process that computes killed": _signal_to_server(
        signal.SIGKILL, ":engine"
    ),
    "the process that computes paused": _signal_to_server(
        signal.SIGSTOP, ":engine"
    ),
    "the process that answers HTTP killed": _signal_to_server(
        signal.SIGKILL, ":gateway"
    ),
    "a damaged adapter to serve": _damage_served,
}
ALL = {
    **FAULTS,
    **FAULTS_OF_PROGRAMS,
    **FAULTS_OF_WORKERS,
    **FAULTS_OF_SERVERS,
}
