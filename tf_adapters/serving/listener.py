"""Listens for HTTP requests in the process of the gateway."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.extras import needs_extra

with needs_extra("server", "The server"):
    import uvicorn

if TYPE_CHECKING:
    from starlette.applications import Starlette

# Seconds after which a connection without requests is closed.
_IDLE_SECONDS = 10
# Seconds that requests have to end after the listener was stopped.
_LAST_SECONDS = 2


def bound_socket(host: str, port: int) -> socket.socket:
    """Returns a socket that is bound to an address of IPv4 or IPv6.

    Args:
        host: See `Listener`.
        port: See `Listener`.

    Raises:
        OSError: If the port is not free.
        OverflowError: If the port is not a number that a port can have.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family)
    # A gateway that replaces a killed one gets its port at once.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
    except (OSError, OverflowError):
        bound.close()
        raise
    return bound


class Listener:
    """Answers HTTP requests to a port with an application.

    Args:
        app: The `Starlette` application.
        host: Address to listen on.
        port: Port to listen on.
    """

    def __init__(self, app: Starlette, host: str, port: int) -> None:
        self._address = host, port
        self._server = uvicorn.Server(
            uvicorn.Config(
                app,
                # Unlike httptools, h11 limits the size of headers.
                http="h11",
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                log_level="critical",
                timeout_keep_alive=_IDLE_SECONDS,
                timeout_graceful_shutdown=_LAST_SECONDS,
            )
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Starts to listen in the running event loop, unless it does.

        Raises:
            OSError: If the port is not free.
        """
        if self._tasks:
            return
        listening = bound_socket(*self._address)
        self._tasks = [
            asyncio.create_task(self._server.serve([listening])),
            asyncio.create_task(self._close_idle()),
        ]

    async def stop(self) -> None:
        """Stops to listen, and waits for the requests that are under way."""
        if not self._tasks:
            return
        serving, closing = self._tasks
        self._server.should_exit = True
        await serving
        closing.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await closing

    async def _close_idle(self) -> None:
        """Closes connections without requests, until it is canceled.

        uvicorn waits without end for a client that sends the beginning of a
        request and no more.
        """
        idle: dict[Any, Any] = {}
        connections: set[Any] = self._server.server_state.connections
        while True:
            await asyncio.sleep(_IDLE_SECONDS)
            # Dict from a connection without a request to its last request.
            found = {
                connection: connection.cycle
                for connection in connections
                if connection.cycle is None
                or connection.cycle.response_complete
            }
            for connection, last in found.items():
                if connection in idle and idle[connection] is last:
                    connection.transport.close()
            idle = found
