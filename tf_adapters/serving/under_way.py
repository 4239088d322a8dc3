"""Counts the requests under way, and waits for their end."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator
import contextlib


class UnderWay:
    """The number of requests under way, by adapter, in one event loop."""

    def __init__(self) -> None:
        self._counts: collections.Counter[str] = collections.Counter()
        self._changed = asyncio.Condition()

    @property
    def total(self) -> int:
        """Number of requests that wait or are computed."""
        return self._counts.total()

    @contextlib.asynccontextmanager
    async def counting(self, key: str) -> AsyncIterator[None]:
        """Context manager within which a request of an adapter is under way."""
        self._counts[key] += 1
        try:
            yield
        finally:
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]
            async with self._changed:
                self._changed.notify_all()

    async def wait_for_end(self, key: str | None = None) -> None:
        """Waits until no request is under way.

        Args:
            key: Key of an adapter, to wait only for its requests. Default:
                `None`, all requests.
        """
        async with self._changed:
            await self._changed.wait_for(
                lambda: not (self.total if key is None else self._counts[key])
            )
