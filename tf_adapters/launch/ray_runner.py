"""Runs a study's runs as tasks of Ray, on whichever nodes it has.

Every node needs this source and its packages under the same paths, and sees the
study's folder and the data, on a file system whose `flock` holds between nodes.
"""

import os
from pathlib import Path
import threading
import time

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.extras import needs_extra
from tf_adapters.launch import process_runner
from tf_adapters.launch import ray_task
from tf_adapters.runs import run_folder

with needs_extra("ray", "--executor=ray"):
    import ray

# Sent to the workers whole, which need not know where this package is.
ray.cloudpickle.register_pickle_by_value(ray_task)
# How often a run is started again whose worker was killed or that was told to
# stop: one that takes its worker down each time must end.
_RESTARTS = 10


class RayRunner:
    """Trains a run by a task of Ray, see `local_runner.run_missing`.

    Args:
        address: Address of a Ray that runs; `None` starts one on this machine,
            which ends with this process.
        cpus: CPUs that a run asks for, and threads that it has.
        gpus: GPUs that a run asks for; several may share one (0.5).
        program: See `process_runner.train_flags`.
    """

    def __init__(
        self, address=None, cpus=1, gpus=0.0, program=process_runner.COMMAND
    ):
        self.program = program
        self.asked = {"CPU": cpus, "GPU": gpus}
        self.environment = process_runner.environment(threads=cpus)
        self.python_path = process_runner.python_path()
        _connect(address)
        self._task = ray.remote(
            num_cpus=cpus,
            num_gpus=gpus,
            max_retries=_RESTARTS,
            retry_exceptions=[InterruptedError],
        )(ray_task.train_on_node)
        self._alive = set()
        self._stopped = False
        self._lock = threading.Lock()

    def capacity(self):
        """Returns how many runs the nodes have room for at a time."""
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        asked = {name: amount for name, amount in self.asked.items() if amount}
        capacity = sum(
            min(int(node.get(name, 0) / asked[name]) for name in asked)
            for node in nodes
        )
        if not capacity:
            raise ConfigError(
                f"No node of Ray has room for a run, which asks for {asked}. "
                "Lower --ray_cpus or --ray_gpus, or give --study_processes "
                f"where nodes come when they are asked for. Nodes: {nodes}"
            )
        return capacity

    def __call__(self, config_file, folder, log):
        """Trains, and returns the exit status; see `ProcessRunner`."""
        folder = Path(folder).absolute()
        config_file = Path(config_file).absolute()
        flags = process_runner.train_flags(self.program, config_file, folder)
        lock = folder / run_folder.LOCK
        with self._lock:
            if self._stopped:
                return 1
            task = self._task.remote(
                flags, self.environment, self.python_path, folder, lock
            )
            self._alive.add(task)
        try:
            status = ray.get(task)
        except ray.exceptions.TaskCancelledError:
            return os.EX_TEMPFAIL
        except ray.exceptions.RayError as error:
            log.write(f"{error}\n")
            log.flush()
            return 1
        finally:
            self._alive.discard(task)
        if status == 0:
            _wait_until_seen(folder / "result.json")
        return status

    def stop(self):
        """Ends the runs that still go on, and lets no other one start."""
        with self._lock:
            self._stopped = True
            for task in list(self._alive):
                ray.cancel(task)


def _connect(address):
    options = {"ignore_reinit_error": True}
    if address is None:
        # What Ray would send to its makers about a cluster that we start.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    else:
        # Attempts, of 40 s each, to reach an address; Ray's default is 20.
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
    try:
        ray.init(address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"Cannot reach a Ray at --ray_address={address}: {error}"
        ) from error


def _wait_until_seen(path):
    """Waits for what another node wrote: NFS may show it a minute later."""
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
