import asyncio
import contextvars

import pytest

from tf_adapters.serving.batcher import Batcher
from tf_adapters.serving.messages import Ask
from tf_adapters.serving.messages import Reply


class _Engine:
    """Answers batches when its gate is set; a reply names its request."""

    def __init__(self):
        self.batches = []
        self.gate = asyncio.Event()

    async def send(self, asks):
        self.batches.append([ask.key for ask in asks])
        await self.gate.wait()
        if any(ask.key == "broken" for ask in asks):
            raise ValueError("broken")
        return [Reply(message=ask.key) for ask in asks]


def _ask(key, tokens=1):
    return Ask(key, "", [], tokens=tokens, deadline=0.0)


async def _asked(batcher, *asks):
    tasks = [asyncio.create_task(batcher.answer(ask)) for ask in asks]
    await asyncio.sleep(0)
    return tasks


def test_requests_that_wait_for_the_engine_become_one_batch():
    async def run():
        engine = _Engine()
        batcher = Batcher(engine.send, max_tokens=10, concurrent=1)
        # "c" does not fit together with "b", and "d" does not overtake it.
        asks = [_ask("a"), _ask("b", 7), _ask("c", 4), _ask("d"), _ask("e", 11)]
        tasks = await _asked(batcher, *asks)
        engine.gate.set()
        replies = [reply.message for reply in await asyncio.gather(*tasks)]
        assert replies == ["a", "b", "c", "d", "e"]
        assert engine.batches == [["a"], ["b"], ["c", "d"], ["e"]]

    asyncio.run(run())


def test_a_batch_belongs_to_none_of_its_requests():
    """Ray cancels what was begun in the context of a request that ends."""
    request = contextvars.ContextVar("request", default=None)
    found = []

    async def send(asks):
        found.append(request.get())
        return [Reply() for _ in asks]

    async def run():
        request.set("a")
        await Batcher(send, max_tokens=10, concurrent=1).answer(_ask("a"))

    asyncio.run(run())
    assert found == [None]


def test_an_error_is_that_of_its_batch_only():
    async def run():
        engine = _Engine()
        batcher = Batcher(engine.send, max_tokens=10, concurrent=1)
        broken, *others = await _asked(batcher, _ask("broken"), _ask("a"))
        engine.gate.set()
        with pytest.raises(ValueError, match="broken"):
            await broken
        assert [(await task).message for task in others] == ["a"]

    asyncio.run(run())


def test_a_request_whose_time_is_over_is_not_sent():
    async def run():
        engine = _Engine()
        batcher = Batcher(engine.send, max_tokens=10, concurrent=1)
        first, late, last = await _asked(batcher, *map(_ask, "abc"))
        late.cancel()
        engine.gate.set()
        assert [(await first).message, (await last).message] == ["a", "c"]
        assert engine.batches == [["a"], ["c"]]

    asyncio.run(run())


def test_as_many_batches_as_allowed_are_under_way():
    async def run():
        engine = _Engine()
        batcher = Batcher(engine.send, max_tokens=1, concurrent=2)
        tasks = await _asked(batcher, *map(_ask, "abc"))
        await asyncio.sleep(0)
        assert engine.batches == [["a"], ["b"]]
        engine.gate.set()
        await asyncio.gather(*tasks)
        assert engine.batches == [["a"], ["b"], ["c"]]

    asyncio.run(run())
