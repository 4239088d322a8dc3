"""Asks a server in this process, without Ray."""

import asyncio
import concurrent.futures
import dataclasses
import json
import threading
import time

import pytest

from tests.serving import served
from tests.stored import change_config
from tests.stored import change_weights
from tf_adapters import heads
from tf_adapters.interop import hub
from tf_adapters.serving.limits import Limits
from tf_adapters.serving.messages import Ask

pytestmark = pytest.mark.integration

SECRET = "the texts of clients"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return served.write_adapters(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def engine(folder):
    """An engine with room for all kinds of adapters, so that it traces once."""
    engine = served.make_engine(capacity=40)
    for name in served.KINDS:
        engine.load(name, str(folder / name))
    engine.prepare()
    return engine


@pytest.fixture
def start(folder, engine, tmp_path):
    """Starts apps, of which each has its own service, and ends them."""
    opened = []

    def started(limits=Limits(), token=None, **options):  # noqa: B008
        options = {"places": [str(folder)], "at_first_use": True, **options}
        app, client = served.make_app(
            engine, limits, tmp_path / "log.jsonl", token, **options
        )
        opened.append(client.__enter__())
        return app, client

    yield started
    for client in opened:
        client.__exit__(None, None, None)


def _predict(client, name, instances, **options):
    path = f"/v1/models/{name}:predict"
    return client.post(path, json={"instances": instances}, **options)


def test_each_adapter_answers_as_alone(start, folder):
    _, client = start()
    with concurrent.futures.ThreadPoolExecutor(len(served.KINDS)) as threads:
        found = threads.map(
            lambda name: _predict(client, name, [served.KINDS[name][2]] * 2),
            served.KINDS,
        )
        found = dict(zip(served.KINDS, found, strict=True))
    for name, response in found.items():
        assert response.status_code == 200, response.text
        answers = response.json()["predictions"]
        (wanted,) = served.expected(folder, name)
        assert served.close(answers, [wanted, wanted]), name


def test_pairs_for_an_adapter_that_names_no_fields(start, folder):
    _, client = start()
    pair = ["the film is good", "bad film"]
    named = dict(zip(("text_a", "text_b"), pair, strict=True))
    wanted = served.expected(folder, "films", [tuple(pair)] * 2)
    for instances in ([pair, named], [named, pair]):
        response = _predict(client, "films", instances)
        assert response.status_code == 200, response.text
        assert served.close(response.json()["predictions"], wanted)
    inputs = [
        {"name": name, "shape": [1], "datatype": "BYTES", "data": [text]}
        for name, text in named.items()
    ]
    infer = "/v2/models/films/infer"
    response = client.post(infer, json={"inputs": inputs})
    assert response.json()["outputs"][0]["data"] == [wanted[0]["label"]]
    for instances in ([pair, "bad film"], [[*pair, "film"]]):
        response = _predict(client, "films", instances)
        assert response.status_code == 400
        assert "`text_a`, `text_b`" in response.json()["error"]
    refused = _predict(client, "questions", [["", ["a", "b"]]])
    assert "Correct or remove them." in refused.json()["error"]


def test_the_open_inference_protocol(start, folder):
    _, client = start()
    about = client.get("/v2/models/pairs").json()
    assert [one["name"] for one in about["inputs"]] == ["first", "second"]
    texts = {"first": ["good film", "bad"], "second": ["film", "the plot"]}
    inputs = [
        {"name": n, "shape": [2], "datatype": "BYTES", "data": data}
        for n, data in texts.items()
    ]
    response = client.post(
        "/v2/models/pairs/infer", json={"id": "x", "inputs": inputs}
    )
    content = response.json()
    assert (content["id"], content["model_name"]) == ("x", "pairs")
    label, probabilities = content["outputs"]
    pairs = list(zip(texts["first"], texts["second"], strict=True))
    wanted = served.expected(folder, "pairs", pairs)
    assert label["data"] == [one["label"] for one in wanted]
    assert served.close(
        probabilities["data"],
        [p for one in wanted for p in one["probabilities"].values()],
    )


def test_an_unknown_adapter_is_404_and_never_the_encoder(start):
    _, client = start()
    for response in (
        _predict(client, "nobody", ["a film"]),
        client.post("/v2/models/nobody/infer", json={}),
        client.get("/v2/models/nobody"),
        client.post("/v2/repository/models/nobody/load"),
        client.post("/v2/repository/models/nobody/unload"),
        client.get("/v1/models/nobody"),
    ):
        assert response.status_code == 404
        assert "`nobody`" in response.json()["error"]


def test_unusable_adapters_are_409_and_others_go_on(start, tmp_path):
    names = ["films", "stars", "topics"]
    folder = served.write_adapters(tmp_path / "runs", names)
    change_config(
        folder / "films" / "adapter",
        lambda config: config["encoder"].update(fingerprint="f" * 64),
    )
    change_weights(
        folder / "stars" / "adapter",
        lambda tensors: tensors.update(
            {name: value[:1] for name, value in tensors.items()}
        ),
    )
    _, client = start(places=[str(folder)])
    foreign = _predict(client, "films", ["a film"])
    assert foreign.status_code == 409
    assert "f" * 64 in foreign.json()["error"]
    assert foreign.json()["error"].count("fingerprint") == 2
    assert _predict(client, "stars", ["a film"]).status_code == 409
    assert _predict(client, "topics", ["a film"]).status_code == 200
    states = client.post("/v2/repository/index").json()
    unusable = {s["name"] for s in states if s["state"] == "UNAVAILABLE"}
    assert unusable == {"films", "stars"}
    assert all(s["reason"] for s in states if s["name"] in unusable)


def test_adapters_are_loaded_replaced_and_unloaded(start, tmp_path):
    folder = served.write_adapters(tmp_path / "runs", ["films"])
    _, client = start(places=[], allowed=[str(folder)], at_first_use=False)
    source = {"parameters": {"source": str(folder / "films")}}
    load = "/v2/repository/models/mine/load"
    assert _predict(client, "mine", ["a film"]).status_code == 404
    outside = {"parameters": {"source": str(tmp_path)}}
    assert client.post(load, json=outside).status_code == 403
    assert client.post(load, json=source).status_code == 200
    before = _predict(client, "mine", ["a film"]).json()
    change_weights(
        folder / "films" / "adapter",
        lambda tensors: tensors.update({n: -x for n, x in tensors.items()}),
    )
    assert _predict(client, "mine", ["a film"]).json() == before
    version = client.get("/v2/models/mine").json()["versions"][0]
    assert client.post(load).json()["version"] > version
    after = _predict(client, "mine", ["a film"]).json()
    assert after["predictions"] == served.expected(folder, "films", ["a film"])
    assert after != before
    (folder / "films" / "adapter" / "adapter_config.json").write_text("{")
    assert client.post(load).status_code == 409
    assert _predict(client, "mine", ["a film"]).json() == after
    unload = "/v2/repository/models/mine/unload"
    assert client.post(unload).status_code == 200
    assert _predict(client, "mine", ["a film"]).status_code == 404


def _in_thread(function, *arguments):
    pool = concurrent.futures.ThreadPoolExecutor(1)
    return pool.submit(function, *arguments)


def test_a_full_queue_is_429_and_unloading_waits(start):
    app, client = start(Limits(waiting=1, seconds=5))
    gate = app.service.engine.gate
    assert _predict(client, "films", ["a film"]).status_code == 200
    gate.clear()
    waiting = _in_thread(_predict, client, "films", ["a film"])
    while not app.service.under_way.total:
        time.sleep(0.01)
    refused = _predict(client, "stars", ["a film"])
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    unloading = _in_thread(client.post, "/v2/repository/models/films/unload")
    time.sleep(0.1)
    assert not unloading.done()
    client.portal.call(gate.set)
    assert waiting.result().status_code == 200
    assert unloading.result().status_code == 200


def test_a_request_ends_at_its_deadline(start):
    app, client = start()
    app.service.engine.gate.clear()
    response = _predict(
        client, "films", ["a"], headers={"X-Request-Timeout": "0.05"}
    )
    assert response.status_code == 504
    assert not app.service.under_way.total


def test_a_draining_server_answers_what_it_has_accepted(start):
    app, client = start()
    gate = app.service.engine.gate
    gate.clear()
    accepted = _in_thread(_predict, client, "films", ["a film"])
    while not app.service.under_way.total:
        time.sleep(0.01)
    drained = _in_thread(client.portal.call, app.drain, 5.0)
    while not app.is_draining:
        time.sleep(0.01)
    refused = _predict(client, "films", ["a film"])
    assert refused.status_code == 503
    assert client.get("/v2/health/ready").status_code == 503
    assert client.get("/v2/health/live").status_code == 200
    assert not drained.done()
    client.portal.call(gate.set)
    assert accepted.result().status_code == 200
    assert drained.result() == 0


def test_a_token_is_asked_for(start):
    _, client = start(token="s3cret")
    path = "/v2/repository/index"
    for value in (None, "Bearer ", "Bearer s3cre", "s3cret", "Bearer é"):
        headers = {} if value is None else {"Authorization": value.encode()}
        response = client.post(path, headers=headers)
        assert response.status_code == 401
        assert "s3cret" not in response.text
    right = {"Authorization": "Bearer s3cret"}
    assert client.post(path, headers=right).status_code == 200
    assert client.get("/v2/health/live").status_code == 200
    assert client.get("/").status_code == 200


def test_pages_of_other_sites_may_not_ask(start):
    _, client = start()
    path = "/v2/repository/models/films/unload"
    foreign = client.post(path, headers={"Origin": "http://evil.example"})
    assert foreign.status_code == 403
    own = client.post(path, headers={"Origin": "http://testserver"})
    assert own.status_code == 404  # It is not loaded yet.


def test_metrics_and_log_have_no_texts(start, tmp_path):
    app, client = start()
    texts = ["the good film", SECRET]
    assert _predict(client, "films", texts).status_code == 200
    assert _predict(client, "films", [{SECRET: SECRET}]).status_code == 400
    metrics = client.get("/metrics").text
    assert 'tf_adapters_texts_total{adapter="films"} 2.0' in metrics
    assert (
        'tf_adapters_requests_total{route="predict",status="400"} 1.0'
        in metrics
    )
    log = (tmp_path / "log.jsonl").read_text()
    assert SECRET not in log + metrics
    first, second, _ = map(json.loads, log.splitlines())
    assert (first["adapter"], first["texts"]) == ("films", 2)
    assert first["tokens"] > 5
    assert (second["status"], second["adapter"]) == (400, "films")
    assert _predict(client, SECRET, ["a film"]).status_code == 404
    assert SECRET not in (tmp_path / "log.jsonl").read_text()
    app.service.engine.is_there = False
    assert client.get("/v2/health/ready").status_code == 503


def test_many_are_loaded_at_once_but_for_the_damaged(folder, tmp_path):
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "adapter_config.json").write_text("{")
    sources = {name: str(folder / name) for name in served.KINDS}
    engine = served.make_engine()
    engine.load_first({"damaged": str(tmp_path / "damaged"), **sources})
    bank = engine.adapters.bank
    assert bank.names == list(served.KINDS)
    assert bank.generation == 0
    engine.load_first({"later": sources["films"]})
    assert engine.adapters.bank is bank
    assert engine.load("words", sources["words"])["head"] == "tagging"


def test_a_full_disk_fails_no_request(folder, engine):
    _, client = served.make_app(
        *(engine, Limits(), "/dev/full"),
        places=[str(folder)],
        at_first_use=True,
    )
    with client:
        for _ in range(2):
            assert _predict(client, "films", ["a film"]).status_code == 200


def test_the_index_has_adapters_that_came_later(start, tmp_path):
    folder = tmp_path / "runs"
    folder.mkdir()
    _, client = start(places=[str(folder)])
    assert client.post("/v2/repository/index").json() == []
    served.write_adapters(folder, ["films"])
    time.sleep(1.1)  # The folder is read once a second at most.
    (found,) = client.post("/v2/repository/index").json()
    assert found["name"] == "films"


def _asks(folder, names):
    return [
        Ask(
            *(f"{name}@1", str(folder / name)),
            *([served.KINDS[name][2]], 8, time.time() + 60),
        )
        for name in names
    ]


def test_a_batch_mixes_adapters(folder, engine):
    replies = engine.answer(_asks(folder, served.KINDS))
    for name, reply in zip(served.KINDS, replies, strict=True):
        wanted = served.expected(folder, name)
        assert served.close(reply.answers, wanted), name


def test_a_download_stops_nobody(folder, engine, monkeypatch):
    is_done = threading.Event()

    def pull(address):
        is_done.wait(20)
        return folder / "films"

    monkeypatch.setattr(hub, "pull", pull)
    with concurrent.futures.ThreadPoolExecutor(1) as threads:
        loading = threads.submit(engine.load, "later@1", "hf://owner/later")
        (reply,) = engine.answer(_asks(folder, ["films"]))
        assert reply.status == 200
        assert not loading.done()
        is_done.set()
        assert loading.result()["head"] == "classification"


@pytest.mark.slow
def test_a_bank_of_two_serves_all_adapters(folder):
    engine = served.make_engine(capacity=2, max_tokens=16)
    names = [name for name in served.KINDS if name != "topics"]
    wanted = {name: served.expected(folder, name) for name in names}

    def ask(offset):
        for i in range(4):
            some = [names[(offset + i + j) % len(names)] for j in range(3)]
            replies = engine.answer(_asks(folder, some))
            for name, reply in zip(some, replies, strict=True):
                assert served.close(reply.answers, wanted[name]), name

    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        list(threads.map(ask, range(2)))


def test_a_new_declaration_loads_and_unloads(folder, engine, tmp_path):
    app, _ = served.make_app(engine, Limits(), tmp_path / "log")

    async def declare(*names):
        sources = {name: str(folder / name) for name in names}
        await app.service.declare(sources)
        return {o.name: o.facts["head"] for o in app.service.catalog.offers()}

    async def both():
        first = await declare("films", "stars")
        return first, await declare("stars", "words")

    first, second = asyncio.run(both())
    assert first == {"films": "classification", "stars": "regression"}
    assert second == {"stars": "regression", "words": "tagging"}


def test_an_error_is_that_of_its_request_only(folder, engine, monkeypatch):
    def fail(*arguments, **options):
        raise TypeError("an error")

    monkeypatch.setattr(heads.Regression, "decode", fail)
    monkeypatch.setattr(heads.Tagging, "encode", fail)
    names = ["films", "stars", "words", "pairs"]
    replies = engine.answer(_asks(folder, names))
    assert [reply.status for reply in replies] == [200, 500, 500, 200]
    assert served.close(replies[0].answers, served.expected(folder, "films"))


def test_nothing_is_computed_after_the_deadline(folder, engine, monkeypatch):
    computed = []
    using = engine.adapters.using

    def slow(keys, sources):
        computed.append(keys)
        time.sleep(0.1)
        return using(keys, sources)

    monkeypatch.setattr(engine.adapters, "using", slow)
    monkeypatch.setattr(engine, "max_tokens", 1)
    late, other = _asks(folder, ["films", "pairs"])
    late = dataclasses.replace(
        late, instances=late.instances * 50, deadline=time.time() + 0.3
    )
    replies = engine.answer([late, other])
    assert [reply.status for reply in replies] == [504, 200]
    assert len(computed) < 10
