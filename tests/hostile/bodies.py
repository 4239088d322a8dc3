"""Draws requests to the live server of which something may be wrong."""

import json

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


def request(draw):
    """Returns the method, the path, the headers and the body of a request.

    Args:
        draw: `random.Random`.
    """
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
    return method, path, headers, body(draw)


def body(draw):
    """Returns bytes: random ones, or JSON that may be damaged."""
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
    found = json.dumps(content).encode()
    if draw.random() < 0.2:  # Cut, doubled or with a wrong byte.
        place = draw.randrange(len(found))
        found = draw.choice(
            (found[:place], found * 2, found[:place] + b"\xff" + found[place:])
        )
    return found


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
