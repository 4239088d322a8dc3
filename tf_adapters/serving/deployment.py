"""The two deployments of Ray Serve that make up the server.

`Gateway` answers HTTP, and forms batches across clients and adapters. It needs
neither TensorFlow nor the encoder. On one machine it listens itself, because
Ray's proxy takes longer for a request than the gateway. In a cluster, Ray's
proxies listen on every machine. `EngineReplica` computes a batch; there can be
several replicas, on several machines. Each loads an adapter when it first needs
it, so that a new replica needs no other preparation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from collections.abc import Callable
import logging
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.extras import needs_extra
from tf_adapters.serving.batcher import Batcher
from tf_adapters.serving.catalog import RETRY_SECONDS
from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import Reply
from tf_adapters.serving.replica import BATCHES
from tf_adapters.serving.replica import EngineReplica
from tf_adapters.serving.request_error import LoadError
from tf_adapters.serving.request_error import RequestError

with needs_extra("server", "The server"):
    import ray
    from ray import serve
    from ray.serve.config import BackpressureConfig
    from ray.serve.exceptions import BackPressureError
    from ray.serve.exceptions import DeploymentUnavailableError

if TYPE_CHECKING:
    from starlette.applications import Starlette

    from tf_adapters.serving.settings import Settings

_LOGGER = logging.getLogger(__name__)
# Requests of more tokens than this wait in a queue of their own, so that a
# short text does not wait for a batch of long ones.
_LONG = 64
# Number of times that a batch is sent. A replica may end while it computes it.
_ATTEMPTS = 5
# Seconds after which a replica that does not answer counts as not ready.
_PATIENCE = 5.0
# Seconds for which a drained gateway refuses requests before it ends.
_LAST_SECONDS = 2.0
# If Ray itself refuses a request, its status is 429 too, instead of 503.
_BACKPRESSURE = BackpressureConfig(status_code=429, retry_after_s=1)


@serve.ingress()
class Gateway:
    """Answers HTTP requests, with the help of the engine's replicas.

    It is the `EngineClient` of its own `Service`.

    Args:
        engine: Handle of the deployment of `EngineReplica`.
        settings: `Settings`.
    """

    def __init__(self, engine: Any, settings: Settings) -> None:
        # Imported here, because the classes are pickled with this module.
        from tf_adapters.serving.app import App
        from tf_adapters.serving.listener import Listener
        from tf_adapters.serving.request_log import RequestLog
        from tf_adapters.serving.service import Service

        self._engine = engine
        batches = settings.max_tokens, settings.replicas
        self._short = Batcher(self._send, *batches)
        self._long = Batcher(self._send, *batches)
        self.service = Service(
            self,
            settings.limits,
            settings.places,
            settings.allow_sources,
            settings.at_first_use,
        )
        log = RequestLog(settings.log_file)
        self._app = App(self.service, log, settings.token, settings.host)
        self._listener: Listener | None = None
        # Each replica loads as many adapters at a time.
        self._loads = asyncio.Semaphore(BATCHES * settings.replicas)
        if settings.ray_address is None:
            self._listener = Listener(
                self._app.starlette(), settings.host, settings.port
            )

    def __serve_build_asgi_app__(self) -> Starlette:
        return self._app.starlette()

    async def reconfigure(self, config: dict[str, Any]) -> None:
        """Serves the declared adapters, the dict `config["adapters"]`."""
        await self.service.declare(config["adapters"])
        if self._listener is not None:
            await self._listener.start()

    async def drain(self, seconds: float) -> int:
        """Ends the service; see `App.drain`."""
        left = await self._app.drain(seconds)
        if self._listener is not None:
            await self._listener.stop()
        return left

    async def answer(self, ask: Ask) -> Reply:
        """Returns the reply to a request, computed with others."""
        tokens = ask.tokens / max(1, len(ask.instances))
        batcher = self._long if tokens > _LONG else self._short
        return await batcher.answer(ask)

    async def load(self, key: str, source: str) -> dict[str, Any]:
        """Loads an adapter; see `Engine.load`."""
        async with self._loads:
            found = await self._retried(
                lambda: self._engine.load.remote(key, source)
            )
        if isinstance(found, Reply):
            wait = RETRY_SECONDS if found.status == 503 else None
            raise LoadError(found.status, found.message, wait)
        return found

    async def load_first(self, sources: dict[str, str]) -> None:
        """Loads many adapters at once; see `Engine.load_first`."""
        # Also waits for the first replica, which `broadcast` does not.
        await self._engine.load_first.remote(sources)
        await self._broadcast("load_first", sources)

    async def prepare(self) -> None:
        """Prepares all replicas for requests; see `Engine.prepare`."""
        await self._broadcast("prepare")

    async def forget(self, key: str) -> None:
        """Removes an adapter from all replicas."""
        await self._broadcast("forget", key)

    async def _broadcast(self, *arguments: Any) -> None:
        """Calls a method of all replicas, of which some may have ended."""
        response = self._engine.broadcast(*arguments)
        await response.results_async(return_exceptions=True)

    async def is_ready(self) -> bool:
        """Returns whether a replica of the engine answers."""
        try:
            return await asyncio.wait_for(self._engine.ping.remote(), _PATIENCE)
        except Exception:
            return False

    async def _send(self, asks: list[Ask]) -> list[Reply]:
        """Sends a batch to a replica of the engine."""
        self._app.metrics.count_batch(len(asks))
        try:
            return await self._retried(lambda: self._engine.answer.remote(asks))
        except BackPressureError:
            reply = Reply(status=429, message="The server is busy.")
        except RequestError as error:
            reply = Reply(status=error.status, message=error.message)
        return [reply] * len(asks)

    async def _retried(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Calls a replica of the engine, again if it ends meanwhile.

        Args:
            call: Function that sends the call.

        Raises:
            RequestError: With status 503 if all attempts fail.
        """
        for attempt in range(_ATTEMPTS):
            try:
                return await call()
            except (ray.exceptions.RayActorError, DeploymentUnavailableError):
                _LOGGER.warning("A replica of the engine has ended.")
                await asyncio.sleep(0.2 * 2**attempt)
        raise RequestError(503, "The engine is being started again.", 1)


def application(settings: Settings, sources: dict[str, str]) -> Any:
    """Returns the Ray Serve application of a server.

    Args:
        settings: `Settings`.
        sources: Dict from the name of each adapter to its path or address.
    """
    engine = serve.deployment(
        EngineReplica,
        name="engine",
        num_replicas=settings.replicas,
        # Batches, downloads, and short calls: no kind may stop the others.
        max_ongoing_requests=3 * BATCHES,
        ray_actor_options={"num_cpus": 1, "num_gpus": settings.gpus},
        graceful_shutdown_timeout_s=settings.grace,
        graceful_shutdown_wait_loop_s=_LAST_SECONDS / 10,
        backpressure_config=_BACKPRESSURE,
    )
    gateway = serve.deployment(
        Gateway,
        name="gateway",
        # More than the gateway itself lets wait, and at least a batch.
        max_ongoing_requests=2 * settings.limits.waiting
        + settings.max_tokens * settings.replicas,
        max_queued_requests=settings.limits.waiting,
        ray_actor_options={"num_cpus": 0},
        # When it ends, its requests have ended: see `App.drain`.
        graceful_shutdown_timeout_s=_LAST_SECONDS,
        graceful_shutdown_wait_loop_s=_LAST_SECONDS / 10,
        user_config={"adapters": sources},
        backpressure_config=_BACKPRESSURE,
    )
    return gateway.bind(engine.bind(settings), settings)
