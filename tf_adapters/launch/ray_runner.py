"""Trains a study's runs as Ray tasks, on the nodes of a Ray cluster.

Every node needs this source code and its packages at the same paths. The
study's folder and the data must be on a shared file system on which `flock`
works across nodes.
"""

from collections.abc import Sequence
import os
from pathlib import Path
import threading
import time
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.errors import Stopped
from tf_adapters.common.extras import needs_extra
from tf_adapters.launch import process_runner
from tf_adapters.launch import ray_task
from tf_adapters.runs import folder_lock

with needs_extra("ray", "--executor=ray"):
    import ray

# Pickle the module by value, so that workers need not import this package.
ray.cloudpickle.register_pickle_by_value(ray_task)
# Number of times that a run is restarted after its worker was killed or the run
# was asked to stop. Without a limit, a run that always crashes would not end.
_RESTARTS = 10


class RayRunner:
    """Callable that trains a run as a Ray task, for `local_runner.run_missing`.

    Args:
        address: Address of a Ray cluster. Default: `None`, which starts Ray on
            this machine until this process ends.
        cpus: Number of CPUs to request for a run. The run uses as many
            threads. Default: 1.
        gpus: Number of GPUs to request for a run. With 0.5, two runs share a
            GPU. Default: 0.
        program: See `process_runner.train_flags`.

    Raises:
        ConfigError: If there is no Ray cluster at the address.
    """

    def __init__(
        self,
        address: str | None = None,
        cpus: int = 1,
        gpus: float = 0.0,
        program: Sequence[str] = process_runner.COMMAND,
    ) -> None:
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

    def capacity(self) -> int:
        """Returns the number of runs that the nodes can train at the same time.

        Raises:
            ConfigError: If no node can train a run.
        """
        nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
        asked = {name: amount for name, amount in self.asked.items() if amount}
        capacity = sum(
            min(int(node.get(name, 0) / asked[name]) for name in asked)
            for node in nodes
        )
        if not capacity:
            raise ConfigError(
                f"No node of Ray has room for a run, which asks for {asked}. "
                "Lower --ray_cpus or --ray_gpus, or give --study_processes if "
                f"nodes start on demand. Nodes: {nodes}"
            )
        return capacity

    def __call__(
        self, config_file: str | os.PathLike[str], folder: Path, log: Any
    ) -> Any:
        """Trains a run and returns the exit status.

        See `ProcessRunner.__call__` for the arguments.
        """
        folder = Path(folder).absolute()
        config_file = Path(config_file).absolute()
        flags = process_runner.train_flags(self.program, config_file, folder)
        lock = folder / folder_lock.LOCK
        with self._lock:
            if self._stopped:
                return Stopped.exit_status
            task = self._task.remote(
                flags, self.environment, self.python_path, folder, lock
            )
            self._alive.add(task)
        try:
            status = ray.get(task)
        except ray.exceptions.TaskCancelledError:
            return Stopped.exit_status
        except ray.exceptions.RayError as error:
            log.write(f"{error}\n")
            log.flush()
            return 1
        finally:
            self._alive.discard(task)
        if status == 0:
            _wait_until_seen(folder / "result.json")
        return status

    def stop(self) -> None:
        """Cancels all active runs. Later calls start no run."""
        with self._lock:
            self._stopped = True
            for task in list(self._alive):
                ray.cancel(task)


def _connect(address: str | None) -> None:
    options = {"ignore_reinit_error": True}
    if address is None:
        # Do not let Ray send usage statistics about a cluster that we start.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
    else:
        # An attempt to reach the address takes 40 s, and Ray would make 20.
        os.environ.setdefault("RAY_gcs_server_port_wait_time_s", "1")
    try:
        ray.init(address or "local", **options)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"Cannot reach Ray at --ray_address={address}: {error}"
        ) from error


def _wait_until_seen(path: Path) -> None:
    """Waits up to a minute until a file that another node wrote is visible.

    A network file system such as NFS may show a new file late.
    """
    deadline = time.monotonic() + 60
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.5)
