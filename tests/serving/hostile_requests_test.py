"""Hundreds of malformed requests, after which the server still answers."""

import json
import random

import pytest

from tests.serving import served
from tf_adapters.serving.limits import Limits

pytestmark = pytest.mark.integration

VALUES = [
    *(None, True, 0, -1, 1e308, 10**400, "", "\0", "\ufeff", "\u202e" * 50),
    *("[MASK] [SEP]", "é電影😀", " " * 500, "a" * 30_000, {}, [], [[]], [None]),
    *({"": ""}, {"text": None}, {"text": ["a"]}, {"text": "a", "x": "b"}),
    *([["a"], "b"], [["a", 1]], ["a", "b", "c"], {"question": "a"}),
    *("\ud800", {"\udfff": "a"}, "../../etc/passwd", "hf://a/b", "{{7*7}}"),
]
NAMES = [
    *("films", "words", "questions", "pairs", "nobody", "..", "%2e%2e%2f"),
    *("films%00", "films:predict", "%ff", "a" * 3_000, "films%2f..%2fstars"),
]
KEYS = ["instances", "inputs", "parameters", "id", "outputs", "source", ""]


def _nested(draw, depth=0):
    """Returns a random value, which may be nested."""
    if depth > 2 or draw.random() < 0.6:
        return draw.choice(VALUES)
    if draw.random() < 0.5:
        size = draw.choice((0, 1, 3, 300))
        return [_nested(draw, depth + 1) for _ in range(size)]
    return {draw.choice(KEYS): _nested(draw, depth + 1) for _ in range(2)}


def _tensor(draw):
    """Returns an input tensor of which something may be wrong."""
    value = draw.choice(VALUES)
    tensor = {
        "name": draw.choice(["text", "question", 1, ""]),
        "shape": draw.choice([[1], [1, 1], [2], [-1], "x", [1] * 9, [10**30]]),
        "datatype": draw.choice(["BYTES", "FP32", None]),
        "data": [value] if draw.random() < 0.7 else value,
        "parameters": draw.choice([{}, {"binary_data_size": 10**9}, 1]),
    }
    return {k: v for k, v in tensor.items() if draw.random() < 0.9}


def _body(draw):
    kind = draw.randrange(5)
    if kind == 0:
        return draw.randbytes(draw.choice((0, 1, 50, 5_000)))
    if kind == 1:
        content = {draw.choice(KEYS): _nested(draw)}
    elif kind == 2:
        content = {"inputs": [_tensor(draw) for _ in range(draw.randrange(3))]}
    else:
        size = draw.choice((1, 1, 3))
        content = {"instances": [draw.choice(VALUES) for _ in range(size)]}
    body = json.dumps(content).encode()
    if draw.random() < 0.2:  # Cut, doubled or with a wrong byte.
        place = draw.randrange(len(body))
        body = draw.choice(
            (body[:place], body * 2, body[:place] + b"\xff" + body[place:])
        )
    return body


def _request(draw):
    name = draw.choice(NAMES)
    path = draw.choice(
        [
            f"/v1/models/{name}:predict",
            f"/v1/models/{name}:predict",
            f"/v2/models/{name}/infer",
            f"/v2/repository/models/{name}/load",
            f"/v2/models/{name}",
            f"/v1/models/{name}",
        ]
    )
    headers = {
        name: value
        for name, value in [
            ("X-Request-Timeout", draw.choice(["x", "-1", "1e999", "nan"])),
            ("Content-Encoding", draw.choice(["gzip", "identity"])),
            ("Inference-Header-Content-Length", draw.choice(["1", "x", "-2"])),
            ("Content-Type", "text/plain"),
        ]
        if draw.random() < 0.1
    }
    method = draw.choice(["POST"] * 8 + ["GET", "DELETE"])
    return method, path, headers, _body(draw)


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
        method, address, headers, body = _request(draw)
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
