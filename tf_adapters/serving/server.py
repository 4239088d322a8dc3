"""Starts the server on Ray Serve, and ends it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.errors import ConfigError
from tf_adapters.common.extras import needs_extra
from tf_adapters.common.sigterm import on_sigterm
from tf_adapters.launch import process_runner

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tf_adapters.serving.settings import Settings

with needs_extra("server", "The server"):
    import ray
    from ray import serve

    from tf_adapters.serving import deployment
    from tf_adapters.serving.listener import bound_socket

_NAME = "tf_adapters"
# Bytes of memory that Ray reserves for large messages.
_OBJECT_STORE = 200_000_000
# Seconds for which a cluster may take to accept a connection.
_PATIENCE = 5.0
# Ray's own lines about requests would repeat those of `RequestLog`.
_LOGGING = {"enable_access_log": False, "log_level": "WARNING"}


@contextlib.contextmanager
def running(settings: Settings, sources: dict[str, str]) -> Iterator[Any]:
    """Context manager within which the server runs.

    At the end, the server refuses new requests, and answers those that it has
    accepted. The value is the handle of the gateway.

    Args:
        settings: `Settings`.
        sources: Dict from the name of each adapter to its path or address.

    Raises:
        ConfigError: If the port is not free, the cluster has a server of
            adapters already, or the server cannot start.
    """
    if settings.ray_address is None:
        _check_port(settings.host, settings.port)
    _connect(settings.ray_address, settings.verbose)
    if not settings.verbose:
        logging.getLogger("ray.serve").setLevel(logging.WARNING)
    with contextlib.ExitStack() as at_the_end:
        if settings.ray_address is None:
            at_the_end.callback(ray.shutdown)
            at_the_end.callback(serve.shutdown)
            _check_resources(settings)
        _start(settings)
        if settings.ray_address is not None:
            _check_no_other(settings.ray_address)
            at_the_end.callback(serve.delete, _NAME)
        gateway = _run(settings, sources)
        at_the_end.callback(_drain, gateway, settings.grace)
        yield gateway


def _drain(gateway: Any, seconds: float) -> None:
    """Waits for the accepted requests, which are lost if the gateway died."""
    with contextlib.suppress(ray.exceptions.RayActorError):
        gateway.drain.remote(seconds).result()


def _start(settings: Settings) -> None:
    """Starts Ray Serve, whose proxies listen if it runs in a cluster."""
    options: dict[str, Any] = {"proxy_location": "Disabled"}
    if settings.ray_address is not None:
        address = {"host": settings.host, "port": settings.port}
        options = {"http_options": address}
    serve.start(**options, logging_config=_LOGGING)


def _check_no_other(address: str) -> None:
    """Raises a `ConfigError` if a cluster has a server of adapters already.

    Ray would replace it, and delete it when the new one ends.
    """
    if _NAME in serve.status().applications:
        raise ConfigError(
            f"The cluster at --ray_address={address} has a server of adapters "
            "already, which a second one would replace. End the first one. If "
            "its command was killed, end it in a Python program that is "
            f"connected to the cluster: ray.serve.delete('{_NAME}')."
        )


def _run(settings: Settings, sources: dict[str, str]) -> Any:
    try:
        return serve.run(
            deployment.application(settings, sources),
            name=_NAME,
            route_prefix=None if settings.ray_address is None else "/",
            logging_config=_LOGGING,
        )
    except RuntimeError as error:
        raise ConfigError(f"The server did not start. {error}") from error


def wait_for_end() -> None:
    """Waits until the process gets SIGTERM or Ctrl-C."""
    ended = threading.Event()

    def end(number: int, frame: Any) -> None:
        ended.set()

    before = signal.signal(signal.SIGINT, end)
    try:
        with on_sigterm(end):
            ended.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def _check_port(host: str, port: int) -> None:
    try:
        bound_socket(host, port).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"Cannot listen on port {port} of {host}: {error}. Give another "
            "--port or --host."
        ) from error


def _check_cluster(address: str) -> None:
    """Raises a `ConfigError` if nothing listens at the address of a cluster.

    Ray itself would try again for many minutes.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return  # Ray has other forms, such as `auto`.
    try:
        socket.create_connection((host, int(port)), _PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(
            f"Cannot reach Ray at --ray_address={address}: {error}. "
            "`ray start --head` prints a cluster's address."
        ) from error


def _connect(address: str | None, verbose: bool) -> None:
    """Starts Ray on this machine, or connects to a cluster."""
    options: dict[str, Any] = {}
    if address is not None:
        _check_cluster(address)
    else:
        # Do not let Ray send usage statistics about a cluster that we start.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        options["include_dashboard"] = False
        options["object_store_memory"] = _OBJECT_STORE
    try:
        ray.init(
            address or "local",
            ignore_reinit_error=True,
            log_to_driver=verbose,
            logging_level=logging.INFO if verbose else logging.ERROR,
            runtime_env={
                "env_vars": {
                    "PYTHONPATH": process_runner.python_path(),
                    "TF_CPP_MIN_LOG_LEVEL": "3",
                }
            },
            **options,
        )
    except Exception as error:  # Ray raises plain ones too.
        what = (
            f"reach Ray at --ray_address={address}" if address else "start Ray"
        )
        raise ConfigError(f"Cannot {what}: {error}") from error


def _check_resources(settings: Settings) -> None:
    """Raises a `ConfigError` if this machine cannot run all replicas.

    Ray would wait for more processors. A cluster may start more machines.
    """
    there = ray.cluster_resources()
    needed = {
        "CPU": settings.replicas,
        "GPU": settings.replicas * settings.gpus,
    }
    for kind, number in needed.items():
        if number > there.get(kind, 0):
            raise ConfigError(
                f"--replicas={settings.replicas} with --ray_gpus="
                f"{settings.gpus:g} need {number:g} {kind}s, but Ray finds "
                f"{there.get(kind, 0):g} here. Give fewer."
            )
