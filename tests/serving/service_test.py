"""Decisions of the service and the application, on an engine without models."""

import asyncio
import contextvars
import threading
import time

import pytest
from starlette.testclient import TestClient

from tf_adapters.serving import catalog
from tf_adapters.serving import sources
from tf_adapters.serving.app import App
from tf_adapters.serving.limits import Limits
from tf_adapters.serving.messages import Reply
from tf_adapters.serving.request_error import LoadError
from tf_adapters.serving.request_error import RequestError
from tf_adapters.serving.request_log import RequestLog
from tf_adapters.serving.service import Service

REQUEST = contextvars.ContextVar("request", default=None)


class _Engine:
    """An `EngineClient` whose loads end, or fail, when a test says so."""

    def __init__(self):
        self.loads = []
        self.requests = []
        self.forgotten = []
        self.asks = []
        self.head = "classification"

    async def load(self, key, source):
        done = asyncio.get_running_loop().create_future()
        self.loads.append(done)
        self.requests.append(REQUEST.get())
        await done
        number = self.loads.index(done)
        return {"max_length": 8, "head": self.head, "number": number}

    async def answer(self, ask):
        self.asks.append(ask)
        return Reply([{"label": "good"} for _ in ask.instances])

    async def load_first(self, sources):
        pass

    async def forget(self, key):
        self.forgotten.append(key)


def _end(load, error=None):
    if error is None:
        load.set_result(None)
    else:
        load.set_exception(error)


async def _service():
    """Returns a service with one adapter, `a`, that is not loaded yet."""
    service = Service(_Engine(), Limits(), at_first_use=True)
    await service.declare({"a": "/runs/a"})
    return service


async def _begun(coroutine):
    task = asyncio.create_task(coroutine)
    for _ in range(3):  # It may begin other tasks.
        await asyncio.sleep(0)
    return task


def test_an_unloaded_adapter_does_not_come_back():
    async def run():
        service = await _service()
        asking = await _begun(service.predict("a", ["x"], 5))
        unloading = await _begun(service.unload("a"))
        _end(service.engine.loads[0])
        await asyncio.gather(asking, unloading)
        assert service.catalog.offers() == []

    asyncio.run(run())


@pytest.mark.parametrize("error", [None, LoadError(409, "no")])
def test_requests_for_an_adapter_wait_for_one_load(error):
    async def run():
        REQUEST.set("late")
        service = await _service()
        late, *others = [
            await _begun(service.predict("a", ["x"], seconds))
            for seconds in (0.01, 5, 5)
        ]
        with pytest.raises(RequestError) as caught:
            await late
        assert caught.value.status == 504
        (load,) = service.engine.loads
        # Ray cancels what was begun in the context of a request that ends.
        assert service.engine.requests == [None]
        _end(load, error)
        answers = await asyncio.gather(*others, return_exceptions=True)
        failed = [isinstance(answer, LoadError) for answer in answers]
        assert failed == [error is not None] * 2

    asyncio.run(run())


def test_of_two_loads_the_last_that_began_wins():
    async def run():
        service = await _service()
        first = await _begun(service.load("a"))
        second = await _begun(service.load("a"))
        loads = service.engine.loads
        _end(loads[1])
        newest = await second
        _end(loads[0])
        assert (await first).version == newest.version
        assert service.catalog.get("a").facts["number"] == 1
        assert newest.key not in service.engine.forgotten
        assert len(service.engine.forgotten) == 2  # The declared and the first.

    asyncio.run(run())


def test_an_unload_wins_over_a_load_that_began_before():
    async def run():
        service = await _service()
        loading = await _begun(service.load("a"))
        await service.unload("a")
        _end(service.engine.loads[0])
        with pytest.raises(RequestError, match="unloaded during") as caught:
            await loading
        assert caught.value.status == 409 and not service.catalog.offers()
        assert len(service.engine.forgotten) == 2  # The declared one, too.

    asyncio.run(run())


@pytest.mark.parametrize(("status", "later"), [(409, 409), (503, 200)])
def test_only_damaged_adapters_stay_refused(monkeypatch, status, later):
    monkeypatch.setattr(catalog, "RETRY_SECONDS", 0.05)

    async def asked(service):
        try:
            await service.predict("a", ["x"], 5)
        except RequestError as error:
            return error.status
        return 200

    async def run():
        service = await _service()
        asking = await _begun(asked(service))
        _end(service.engine.loads[0], LoadError(status, "no"))
        assert await asking == status
        assert await asked(service) == status
        assert len(service.engine.loads) == 1
        await asyncio.sleep(0.06)
        asking = await _begun(asked(service))
        # Another request does not load it at the same time.
        assert await asked(service) == status
        assert len(service.engine.loads) <= 2
        for load in service.engine.loads[1:]:
            _end(load)
        assert await asking == later
        assert (service.catalog.get("a").problem is None) == (later == 200)

    asyncio.run(run())


@pytest.mark.parametrize(
    ("head", "tokens"), [("classification", 8), ("tagging", 3 + 1_000)]
)
def test_texts_that_are_split_count_as_a_whole(head, tokens):
    async def run():
        service = await _service()
        service.engine.head = head
        asking = await _begun(service.predict("a", ["a" * 3_000], 5))
        _end(service.engine.loads[0])
        await asking
        assert [ask.tokens for ask in service.engine.asks] == [tokens]

    asyncio.run(run())


def test_nobody_waits_for_a_look_into_the_folders(monkeypatch):
    looks, is_done = [], threading.Event()

    def slow(places):
        looks.append(places)
        assert is_done.wait(10)
        return {"a": "/other", "b": "/runs/b"}

    monkeypatch.setattr(sources, "present_adapters", slow)

    async def run():
        service = await _service()
        late, *others = [await _begun(service.offer("b")) for _ in range(3)]
        late.cancel()  # Its client is gone.
        listed = await _begun(service.offers())
        # The other adapter answers meanwhile.
        assert (await service.offer("a")).source == "/runs/a"
        is_done.set()
        found = await asyncio.gather(*others)
        assert [offer.source for offer in found] == ["/runs/b"] * 2
        assert [offer.name for offer in await listed] == ["a", "b"]
        with pytest.raises(RequestError, match="no adapter `c`"):
            await service.offer("c")
        assert len(looks) == 1  # They look once a second.
        # Loads look at once, because a client says that there is a new one.
        loading = await _begun(service.load("c"))
        with pytest.raises(RequestError, match="in the server's folders"):
            await loading
        assert len(looks) == 2

    asyncio.run(run())


def _client(**options):
    service = Service(_Engine(), Limits(), allowed=["/runs"])
    app = App(service, RequestLog(None), **options)
    return TestClient(app.starlette())


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost:8501", None, 200),
        ("127.0.0.1:8501", "http://127.0.0.1:8501", 200),
        ("[::1]:8501", "http://[::1]:8501", 200),
        ("evil.example:8501", None, 403),
        ("evil.example:8501", "http://evil.example:8501", 403),
        ("localhost.evil.example", None, 403),
        ("[", None, 403),
        ("localhost:8501", "http://[", 403),
        ("localhost:8501", "null", 403),
    ],
)
def test_a_local_server_answers_no_other_host(host, origin, status):
    headers = {"Host": host} | ({"Origin": origin} if origin else {})
    path = "/v2/repository/index"
    response = _client(host="127.0.0.1").post(path, headers=headers)
    assert response.status_code == status


@pytest.mark.parametrize("host", ["127.1", "127.0.0.2", "::1"])
def test_other_spellings_of_this_machine_are_local(host):
    headers = {"Host": "evil.example:8501"}
    client = _client(host=host)
    assert client.get("/v2", headers=headers).status_code == 403


@pytest.mark.parametrize(
    "options",
    [{"host": "0.0.0.0"}, {"host": "127.0.0.1", "token": "s3cret"}],
)
def test_a_server_for_others_answers_any_host(options):
    headers = {"Host": "models.example", "Authorization": "Bearer s3cret"}
    client = _client(**options)
    path = "/v2/repository/index"
    assert client.post(path, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("source", "status"),
    [
        (r"a\u0000b", 400),
        (r"\ud800", 400),
        ("a/" * 400_000, 400),
        ("/elsewhere", 403),
    ],
)
def test_odd_sources_are_refused_at_once(source, status):
    body = f'{{"parameters": {{"source": "{source}"}}}}'
    start = time.monotonic()
    response = _client().post("/v2/repository/models/a/load", content=body)
    assert response.status_code == status
    assert time.monotonic() - start < 5
