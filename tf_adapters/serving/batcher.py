"""Sends requests that wait together, as soon as the engine is free."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import Awaitable
from collections.abc import Callable
import contextvars

from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import Reply


class Batcher:
    """Sends requests in batches. All of it runs in one event loop.

    A batch consists of the requests that wait when the engine is free. So a
    request that is alone does not wait for others, and the more requests there
    are, the larger the batches are. `ray.serve.batch` also lets requests wait
    after they have been put into a batch, so its batches stay small.

    Args:
        send: Function that returns the replies to a batch, in its order.
        max_tokens: Maximum number of tokens of a batch. A request with more
            tokens is a batch of its own.
        concurrent: Maximum number of batches that are under way.
    """

    def __init__(
        self,
        send: Callable[[list[Ask]], Awaitable[list[Reply]]],
        max_tokens: int,
        concurrent: int,
    ) -> None:
        self._send = send
        self._max_tokens = max_tokens
        self._free = concurrent
        self._waiting: collections.deque[tuple[Ask, asyncio.Future[Reply]]]
        self._waiting = collections.deque()
        # The event loop itself does not keep its tasks alive.
        self._tasks: set[asyncio.Task[None]] = set()

    async def answer(self, ask: Ask) -> Reply:
        """Returns the reply to a request, sent together with others."""
        reply = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, reply))
        self._start()
        return await reply

    def _start(self) -> None:
        """Sends batches while there are requests and the engine is free."""
        while self._free and (batch := self._next_batch()):
            self._free -= 1
            # In a context of its own: Ray cancels what a request has begun when
            # its client goes, and the batch has the requests of others.
            task = asyncio.create_task(
                self._run(batch), context=contextvars.Context()
            )
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _next_batch(self) -> list[tuple[Ask, asyncio.Future[Reply]]]:
        """Takes the requests of the next batch out of the queue."""
        batch: list[tuple[Ask, asyncio.Future[Reply]]] = []
        tokens = 0
        while self._waiting:
            ask, reply = self._waiting[0]
            tokens += ask.tokens
            if batch and tokens > self._max_tokens:
                break
            self._waiting.popleft()
            if reply.done():  # Its client is gone, or its time is over.
                tokens -= ask.tokens
            else:
                batch.append((ask, reply))
        return batch

    async def _run(
        self, batch: list[tuple[Ask, asyncio.Future[Reply]]]
    ) -> None:
        """Sends a batch, and hands out its replies or its error."""
        try:
            replies = await self._send([ask for ask, _ in batch])
        except Exception as error:
            for _, reply in batch:
                if not reply.done():
                    reply.set_exception(error)
        else:
            for (_, reply), found in zip(batch, replies, strict=True):
                if not reply.done():
                    reply.set_result(found)
        finally:
            self._free += 1
            self._start()
