"""Draws what hostile clients send over a connection to the live server."""

import dataclasses
import json
import random
import struct

from tests.hostile import bodies

_PREDICT = "/v1/models/films:predict"
_INFER = "/v2/models/films/infer"
_BODY = b'{"instances": ["the film is good"]}'


@dataclasses.dataclass(frozen=True)
class Attack:
    """What is sent over one connection.

    Attributes:
        kind: Name of the kind.
        pieces: List of bytes, each sent on its own.
        pause: Seconds between two pieces.
        leaves: Whether the client breaks off without waiting for an answer.
    """

    kind: str
    pieces: list[bytes]
    pause: float = 0.0
    leaves: bool = False


def draw(number, seed):
    """Returns the attack of a number. All kinds take turns."""
    chance = random.Random(f"{seed} {number}")
    kind = list(KINDS)[number % len(KINDS)]
    made = KINDS[kind](chance)
    made = made if isinstance(made, dict) else {"pieces": [made]}
    return Attack(kind, **made)


def http(method, path, body=b"", headers=(), token=b"s3cret"):
    """Returns the bytes of a request, which asks to close the connection.

    Args:
        method: String or bytes, as are the path and the headers.
        path: Path.
        body: Bytes.
        headers: Pairs of name and value. `Content-Length` is added unless they
            have it, or a `Transfer-Encoding`.
        token: Token to send.
    """
    headers = [(_bytes(name), _bytes(value)) for name, value in headers]
    names = {name.lower() for name, _ in headers}
    if not names & {b"content-length", b"transfer-encoding"}:
        headers.append((b"Content-Length", b"%d" % len(body)))
    lines = [
        b"%s %s HTTP/1.1" % (_bytes(method), _bytes(path)),
        b"Host: 127.0.0.1",
        b"Connection: close",
        b"Authorization: Bearer " + token,
        *(b"%s: %s" % header for header in headers),
    ]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def _bytes(value):
    return value if isinstance(value, bytes) else value.encode()


def _content(chance):
    method, path, headers, body = bodies.request(chance)
    return http(method, path, body, headers.items())


def _large(chance):
    text = chance.choice(("a", "é", "good ", "\0", "😀")) * 1_000_000
    content = chance.choice(
        (
            lambda: json.dumps({"instances": [text]}),
            lambda: json.dumps({"instances": [text[:90_000]] * 99}),
            lambda: json.dumps({"instances": ["a"] * 100_000}),
            lambda: f'{{"instances": [{"9" * 1_000_000}]}}',
            lambda: "[" * 200_000,
            lambda: '{"instances":' * 100_000,
            lambda: json.dumps({text[:9_000]: [1e308] * 1_000}),
        )
    )()
    return http("POST", _PREDICT, content.encode())


def _length(chance):
    value = chance.choice(
        *[["-1", "x", "", "1" * 400, "0x10", "1e3", "+5", "0", "5", "34", "99"]]
    )
    headers = [("Content-Length", value)]
    if chance.random() < 0.3:
        headers.append(
            chance.choice(
                (("Content-Length", "7"), ("Transfer-Encoding", "chunked"))
            )
        )
    # A body that is too short: the server would wait for the rest.
    return {
        "pieces": [http("POST", _PREDICT, _BODY, headers)],
        "leaves": value in ("99", "1" * 400),
    }


def _chunks(chance):
    good = b"%x\r\n%s\r\n" % (len(_BODY), _BODY)
    parts = [
        *(good, b"0\r\n\r\n", b"zz\r\nab\r\n", b"-1\r\n\r\n", b"\r\n"),
        *(b"f" * 40 + b"\r\n", b"2\r\nabc\r\n", b"1;x=" + b"y" * 9_000),
    ]
    body = b"".join(chance.choices(parts, k=chance.randrange(1, 4)))
    coding = chance.choice(("chunked", "chunked, chunked", "gzip", "identity"))
    return {
        "pieces": [
            http("POST", _PREDICT, body, [("Transfer-Encoding", coding)])
        ],
        "leaves": chance.random() < 0.7,
    }


def _slow(chance):
    request = http("POST", _PREDICT, _BODY)
    request = request[: chance.randrange(5, len(request))]
    step = chance.choice((1, 9, 50))
    pieces = [request[i : i + step] for i in range(0, len(request), step)]
    return {
        "pieces": pieces[:60],
        "pause": chance.choice((0.01, 0.05)),
        "leaves": True,
    }


def _pipelined(chance):
    first = [
        http("POST", _PREDICT, _BODY).replace(b"Connection: close\r\n", b""),
        http("GET", "/v2/health/live").replace(b"Connection: close\r\n", b""),
        _content(chance),
        b"GET / HTTP/1.1\r\n\r\n",
    ]
    more = [*first, b"\r\n" * chance.randrange(1, 9), b"nonsense"]
    requests = chance.choices(more, k=chance.randrange(1, 12))
    return {
        "pieces": [b"".join([chance.choice(first), *requests])],
        "leaves": chance.random() < 0.3,
    }


def _line(chance):
    method = chance.choice(
        ["PUT", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW", "post", ""]
        + [b"\xff", "G" * 9_000, "GET\tx", "HEAD"]
    )
    path = chance.choice(
        ["*", "//", "/../../etc/passwd", "http://elsewhere/", "", "/%"]
        + ["/v1/models/films", "/" + "a" * 100_000, b"/\xff\xfe", b"/a\0b"]
        + ["/v2/models/%00/infer", "/v1/models/é:predict", "/?" + "a&" * 9_000]
    )
    request = http(method, path)
    version = chance.choice([b"HTTP/1.1"] * 4 + [b"HTTP/9.9", b"HTTP/0.9", b""])
    return request.replace(b"HTTP/1.1", version, 1)


def _headers(chance):
    headers = chance.choice(
        [
            [("X-Large", "a" * 200_000)],
            [(f"X-{number}", "a") for number in range(5_000)],
            [("X-Bad", b"\xff\0\x01")],
            [(b"X Bad", "a"), ("", "a")],
            [("Expect", "100-continue")],
            [("Upgrade", "websocket"), ("Sec-WebSocket-Key", "a")],
            [("Upgrade", "h2c"), ("HTTP2-Settings", "a")],
            [("Host", "elsewhere"), ("Origin", "http://elsewhere")],
            [("Content-Encoding", "gzip")],
            [("Authorization", b"Bearer \xff\xfe"), ("Cookie", "a" * 9_000)],
            [("X-Request-Id", "a\tb" * 900), ("X-Request-Timeout", "1e-9")],
            [("X-Request-Timeout-Seconds", "-1"), ("X-Forwarded-For", "a, b")],
        ]
    )
    token = chance.choice((b"s3cret", b"wrong", b"\xe9", b""))
    return http("POST", _PREDICT, _BODY, headers, token)


def _binary(chance):
    def lie(truth, *lies):
        return truth if chance.random() < 0.8 else chance.choice(lies)

    texts = chance.choices(
        [b"the film is good", b"a" * 9_000, b"", b"\xff\xfe"],
        weights=[5, 1, 1, 1],
        k=chance.randrange(3),
    )
    parts = [
        struct.pack("<I", lie(len(text), 0, 1, 16, 2**31, 2**32 - 1)) + text
        for text in texts
    ]
    data = b"".join(parts)
    size = lie(len(data), -1, 10**9, 1.5, "1", None, 2**70)
    tensor = {
        "name": lie("text", "other"),
        "datatype": "BYTES",
        "shape": lie([len(parts)], [1], [10**9, 10**9], [-1]),
        "parameters": {"binary_data_size": size},
    }
    header = json.dumps({"inputs": lie([tensor], [tensor] * 2)}).encode()
    claimed = lie(len(header), 0, 10**9, -5, "²", len(data))
    headers = [("Inference-Header-Content-Length", str(claimed))]
    return http("POST", _INFER, header + data, headers)


def _gone(chance):
    size = chance.choice((1, 50, 200))
    content = json.dumps({"instances": ["the film is good"] * size}).encode()
    return {"pieces": [http("POST", _PREDICT, content)], "leaves": True}


def _noise(chance):
    handshake = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"
    ended = [
        chance.randbytes(chance.choice((100, 70_000))) + b"\r\n\r\n",
        handshake + b"a" * 500,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET " + b"a" * 1_000_000,
    ]
    # The server waits for more of these, but not without end.
    begun = [b"G", b"\r\n" * 50_000, b"GET / HTTP/1.1\r\nHost: a\r\n"]
    piece = chance.choice(ended * 2 + begun)
    return {
        "pieces": [piece],
        "leaves": piece in begun and chance.random() < 0.9,
    }


KINDS = {
    "wrong JSON, numbers, Unicode and names": _content,
    "a million characters, deep nesting": _large,
    "wrong `Content-Length`": _length,
    "wrong chunks": _chunks,
    "a request in small pieces that never ends": _slow,
    "several requests in one packet": _pipelined,
    "wrong methods, paths and versions": _line,
    "headers that are huge, many or wrong": _headers,
    "binary tensors that lie about their sizes": _binary,
    "the client leaves before the answer": _gone,
    "what is not HTTP": _noise,
}
