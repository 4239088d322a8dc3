"""Requests and responses in JSON, without a server."""

import asyncio
import json
import struct

import pytest

from tf_adapters.serving import instances
from tf_adapters.serving import tensors
from tf_adapters.serving.limits import Limits
from tf_adapters.serving.limits import estimated_tokens
from tf_adapters.serving.request_error import RequestError


def _body(**content):
    return json.dumps(content).encode()


def _input(texts, **changes):
    shape = [len(texts)]
    return {
        "name": "text",
        "shape": shape,
        "datatype": "BYTES",
        "data": texts,
        **changes,
    }


def test_instances_are_texts_lists_or_objects():
    given = ["a", ["a", "b"], {"tokens": ["a", "b"]}, {"first": "a"}]
    assert instances.read_instances(_body(instances=given), Limits()) == given


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "list of instances"),
        (b"[]", "JSON object"),
        (b"{", "not JSON"),
        (b'{"instances": [NaN]}', "NaN is not a number"),
        (b'{"instances": ["\xff"]}', "not UTF-8, at byte 16"),
        (b'{"instances": ["\\ud800"]}', "surrogate"),
        (b'{"instances": "a"}', "list of instances.*`instances` of type str"),
        (b'{"text": "a"}', r"list of instances.*keys \['text'\]"),
        (b'{"instances": [1]}', "Instance 0"),
        (b'{"instances": ["a", {"text": 1}]}', "Instance 1"),
        (b'{"instances": [[["a"], [1]]]}', "Instance 0"),
        (b'{"instances": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"instances": [' + b"9" * 5_000 + b"]}", "not JSON"),
    ],
)
def test_other_bodies_are_refused(body, message):
    with pytest.raises(RequestError, match=message) as caught:
        instances.read_instances(body, Limits())
    assert caught.value.status == 400


def test_inputs_become_rows():
    body = _body(
        id="7",
        inputs=[
            _input(["a", "b"], name="first"),
            _input([["c"], ["d"]], name="second", shape=[2, 1]),
        ],
        outputs=[{"name": "label"}],
    )
    asked = tensors.read_infer(body, Limits())
    assert asked.instances == [
        {"first": "a", "second": "c"},
        {"first": "b", "second": "d"},
    ]
    assert (asked.id, asked.outputs) == ("7", ("label",))


def test_inputs_may_be_binary():
    texts = ["é", "", "abc"]
    encoded = [text.encode() for text in texts]
    binary = b"".join(struct.pack("<I", len(t)) + t for t in encoded)
    one = _input([], shape=[3], parameters={"binary_data_size": len(binary)})
    del one["data"]
    header = _body(inputs=[one])
    asked = tensors.read_infer(header + binary, Limits(), str(len(header)))
    assert [row["text"] for row in asked.instances] == texts


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shape": [2]}, "must be"),
        ({"shape": [True]}, "must be"),
        ({"shape": [-1, -1]}, "must be"),
        ({"shape": None}, "must be"),
        ({"datatype": "FP32"}, "BYTES"),
        ({"data": [1]}, "list of strings"),
        ({"data": None}, "list of strings"),
        ({"name": 1}, "`name`"),
        ({"parameters": {"binary_data_size": 9}}, "number of bytes"),
        ({"parameters": {"binary_data_size": "9"}}, "number of bytes"),
    ],
)
def test_other_inputs_are_refused(changes, message):
    body = _body(inputs=[_input(["a"], **changes)])
    with pytest.raises(RequestError, match=message):
        tensors.read_infer(body, Limits())


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "\ud800"},
        {"outputs": [{"name": "\ud800"}]},
        {"inputs": [_input(["a"], name="\ud800")]},
    ],
)
def test_names_that_no_response_can_repeat_are_refused(changes):
    body = _body(**{"inputs": [_input(["a"])], **changes})
    with pytest.raises(RequestError, match="half of a surrogate pair"):
        tensors.read_infer(body, Limits())


def test_no_input_replaces_another():
    body = _body(inputs=[_input(["a"]), _input(["b"])])
    with pytest.raises(RequestError, match="Two inputs are named `text`"):
        tensors.read_infer(body, Limits())


def test_a_long_number_of_bytes_is_refused():
    with pytest.raises(RequestError, match="must be a number of bytes"):
        tensors.read_infer(_body(inputs=[_input(["a"])]), Limits(), "9" * 5_000)


def test_inputs_of_different_lengths_are_refused():
    body = _body(inputs=[_input(["a"], name="x"), _input(["a", "b"], name="y")])
    with pytest.raises(RequestError, match="same shape"):
        tensors.read_infer(body, Limits())


def test_answers_become_tensors():
    answers = [
        {"label": "a", "probabilities": {"a": 0.9, "b": 0.1}, "tags": ["x"]},
        {"label": "b", "probabilities": {"a": 0.2, "b": 0.8}, "tags": []},
    ]
    label, probabilities, tags = tensors.output_tensors(answers)
    assert label == {
        "name": "label",
        "datatype": "BYTES",
        "shape": [2],
        "data": ["a", "b"],
    }
    assert probabilities["shape"] == [2, 2]
    assert probabilities["data"] == [0.9, 0.1, 0.2, 0.8]
    assert tags["data"] == ['["x"]', "[]"]
    (one,) = tensors.output_tensors(answers, ["tags"])
    assert one == tags
    with pytest.raises(RequestError, match="no output `score`"):
        tensors.output_tensors(answers, ["score"])


def test_too_many_or_too_long_texts_are_refused():
    limits = Limits(texts=2, characters=3)
    limits.check_instances(["abc", ["a", "bc"]])
    for given, status in [
        ([], 400),
        (["a"] * 3, 413),
        (["abcd"], 413),
        ([{"x": ["ab", "cd"]}], 413),
        ([["", "", "", ""]], 413),  # Empty words take time, too.
    ]:
        with pytest.raises(RequestError) as caught:
            limits.check_instances(given)
        assert caught.value.status == status
        # A request without texts cannot be split.
        several = "several requests" in caught.value.message
        assert several == (len(given) > limits.texts)


def _refuse(*_):
    raise AssertionError("A request with too many instances was checked.")


def test_the_number_of_instances_is_checked_first(monkeypatch):
    monkeypatch.setattr(instances, "check_instance", _refuse)
    monkeypatch.setattr(tensors, "check_instance", _refuse)
    limits = Limits(texts=2)
    header = _body(
        inputs=[_input([], data=None, parameters={"binary_data_size": 400})]
    )
    for read in (
        lambda: instances.read_instances(_body(instances=["a"] * 3), limits),
        lambda: tensors.read_infer(_body(inputs=[_input(["a"] * 3)]), limits),
        # The shape of binary strings is checked after all have been read.
        lambda: tensors.read_infer(
            header + bytes(400), limits, str(len(header))
        ),
    ):
        with pytest.raises(RequestError, match="1 to 2 instances") as caught:
            read()
        assert caught.value.status == 413


async def _chunks(parts, seconds=0.0):
    for part in parts:
        await asyncio.sleep(seconds)
        yield part


@pytest.mark.parametrize(
    ("headers", "seconds", "status"),
    [
        ({"content-length": "9"}, 0, 413),
        ({}, 0, 413),
        ({"content-encoding": "gzip"}, 0, 415),
        ({}, 0.2, 408),
    ],
)
def test_large_compressed_and_slow_bodies_are_refused(headers, seconds, status):
    limits = Limits(body_bytes=8, body_seconds=0.05)
    with pytest.raises(RequestError) as caught:
        asyncio.run(limits.read_body(_chunks([b"12345"] * 2, seconds), headers))
    assert caught.value.status == status


def test_a_client_may_ask_for_less_time_only():
    limits = Limits(seconds=5)
    assert limits.timeout(None) == limits.timeout("9") == 5
    assert limits.timeout("0.5") == 0.5
    for asked in ("0", "-1", "nan", "soon"):
        with pytest.raises(RequestError):
            limits.timeout(asked)


def test_tokens_are_estimated_from_characters():
    texts = ["a" * 30, "a" * 900]
    assert estimated_tokens(texts, longest=100) == 13 + 100
    assert estimated_tokens(texts, longest=None) == 13 + 303
    assert estimated_tokens([["a", "", "b", "c"]], longest=100) == 7
