"""Hundreds of malformed requests, after which the server still answers."""

import random

import pytest

from tests.hostile import bodies
from tests.serving import served
from tf_adapters.serving.limits import Limits

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = served.write_adapters(tmp_path_factory.mktemp("runs"))
    engine = served.make_engine(capacity=20)
    sources = {name: str(folder / name) for name in served.KINDS}
    for name, source in sources.items():
        engine.load(name, source)
    engine.prepare()
    limits = Limits(texts=100, characters=20_000, body_bytes=1_000_000)
    log = tmp_path_factory.mktemp("log") / "log.jsonl"
    _, client = served.make_app(
        engine, limits, log, places=[str(folder)], at_first_use=True
    )
    with client:
        yield client


def test_malformed_requests_are_refused_and_others_answered(client):
    draw = random.Random(2028)
    right = {"instances": [served.KINDS["films"][2]]}
    path = "/v1/models/films:predict"
    wanted = client.post(path, json=right).json()["predictions"]
    seen = {}
    for number in range(400):
        method, address, headers, body = bodies.request(draw)
        response = client.request(
            method, address, headers=headers, content=body
        )
        status = response.status_code
        seen[status] = seen.get(status, 0) + 1
        case = (number, method, address[:60], headers, body[:200])
        assert status < 500 or status == 504, (status, case)
        if status != 200:
            assert response.json()["error"], case
        if number % 50 == 0:
            found = client.post(path, json=right).json()["predictions"]
            assert served.close(found, wanted)
    assert seen[400] > 50
    assert min(seen[200], seen[404]) > 5
    assert seen[413] > 0
