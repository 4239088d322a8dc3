"""The process that computes predictions, as a deployment of Ray Serve."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent import futures
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.serving.failures import loading_failed
from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import Reply

if TYPE_CHECKING:
    from tf_adapters.serving.settings import Settings

# Number of threads of a replica for batches, and of those for loads. For each
# replica, the gateway sends a batch of short and one of long texts at a time:
# while one is computed, the texts of the other are tokenized. The other threads
# are for short calls.
BATCHES = 4


class EngineReplica:
    """Computes predictions in a process of its own.

    Args:
        settings: `Settings`.
    """

    def __init__(self, settings: Settings) -> None:
        # Imported here, so that the gateway does not import TensorFlow.
        from tf_adapters.config.plugins import load_plugins
        from tf_adapters.encoders.load import load_encoder
        from tf_adapters.serving.engine import Engine

        load_plugins(settings.plugins)
        encoder, tokenizer = load_encoder(
            settings.encoder, settings.precision, quantize=settings.quantize
        )
        self._engine = Engine(
            encoder, tokenizer, settings.capacity, settings.max_tokens
        )
        self._threads = futures.ThreadPoolExecutor(BATCHES)
        # Of their own, so that no batch waits for a download.
        self._loading_threads = futures.ThreadPoolExecutor(BATCHES)

    async def answer(self, asks: list[Ask]) -> list[Reply]:
        """Returns the reply to each request of a batch."""
        return await self._in_thread(self._engine.answer, asks)

    async def load(self, key: str, source: str) -> dict[str, Any] | Reply:
        """Loads an adapter; see `Engine.load`.

        If it cannot be loaded, returns a `Reply` that says why.
        """
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(
                self._loading_threads, self._engine.load, key, source
            )
        except Exception as error:
            return loading_failed(error)

    async def load_first(self, sources: dict[str, str]) -> None:
        """Loads many adapters at once; see `Engine.load_first`."""
        await self._in_thread(self._engine.load_first, sources)

    async def prepare(self) -> None:
        """Prepares for requests; see `Engine.prepare`."""
        await self._in_thread(self._engine.prepare)

    async def forget(self, key: str) -> None:
        """Removes an adapter; see `Engine.forget`."""
        await self._in_thread(self._engine.forget, key)

    async def ping(self) -> bool:
        """Returns `True`, if the replica has been made."""
        return True

    async def _in_thread(
        self, function: Callable[..., Any], *arguments: Any
    ) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, function, *arguments)
