"""Reads and writes the JSON bodies of the Open Inference Protocol, version 2.

A request has an input tensor of strings for each text field, and a response an
output tensor for each key of the answers. Of the protocol's extension for
binary data, requests may use the part for inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
import dataclasses
import json
import math
import struct
from typing import TYPE_CHECKING
from typing import Any

from tf_adapters.common.text_files import is_unicode
from tf_adapters.serving.instances import HALF
from tf_adapters.serving.instances import check_instance
from tf_adapters.serving.instances import parse_object
from tf_adapters.serving.request_error import RequestError

if TYPE_CHECKING:
    from tf_adapters.serving.limits import Limits


@dataclasses.dataclass(frozen=True)
class InferRequest:
    """A request for predictions.

    Attributes:
        instances: List of dicts from the name of an input to its text.
        id: String that the response repeats, or `None`.
        outputs: Names of the outputs to return. Empty for all.
    """

    instances: list[dict[str, str]]
    id: str | None = None
    outputs: tuple[str, ...] = ()


def read_infer(
    body: bytes, limits: Limits, header_length: str | None = None
) -> InferRequest:
    """Reads the body of an `infer` request.

    Args:
        body: JSON, and after it binary data, if there are any.
        limits: `Limits`, of which only the number of instances is checked.
        header_length: Value of the header `Inference-Header-Content-Length`:
            the number of bytes of the JSON. `None` (default) if all is JSON.

    Raises:
        RequestError: If the body has another form, or too many instances.
    """
    size = _number_of_bytes(header_length, len(body))
    content, binary = parse_object(body[:size]), body[size:]
    inputs = content.get("inputs")
    if not isinstance(inputs, list) or not inputs:
        raise RequestError(
            400,
            'Expected a list of tensors of strings, as in {"inputs": [{"name": '
            '"text", "shape": [1], "datatype": "BYTES", "data": ["a film"]}]}.',
        )
    columns = {}
    for one in inputs:
        name, texts, binary = _read_input(one, binary, limits)
        if name in columns:
            raise RequestError(400, f"Two inputs are named `{name[:40]}`.")
        columns[name] = texts
    return InferRequest(
        _instances(columns), _id_of(content), _names_of_outputs(content)
    )


def _number_of_bytes(header_length: str | None, size: int) -> int:
    if header_length is None:
        return size
    # Longer numbers cannot be converted.
    is_number = header_length.isdecimal() and len(header_length) < 20
    if not is_number or int(header_length) > size:
        raise RequestError(
            400,
            "The header `Inference-Header-Content-Length` must be a number of "
            f"bytes, at most {size}. Received: {header_length[:40]!r}",
        )
    return int(header_length)


def _read_input(
    one: Any, binary: bytes, limits: Limits
) -> tuple[str, list[str], bytes]:
    """Reads an input tensor.

    Args:
        one: Entry of the request's `inputs`.
        binary: The binary data of this input and of later ones.
        limits: See `read_infer`.

    Returns:
        Name of the tensor, its strings, and the binary data of later inputs.
    """
    if not isinstance(one, dict) or not isinstance(one.get("name"), str):
        raise RequestError(400, "Each input must be an object with a `name`.")
    name = _checked(one["name"])
    if one.get("datatype") != "BYTES":
        raise RequestError(
            400, f"Input `{name[:40]}` must have the datatype BYTES."
        )
    parameters = one.get("parameters")
    size = (
        parameters.get("binary_data_size")
        if isinstance(parameters, dict)
        else None
    )
    if size is None:
        texts = _flat(one.get("data"))
    elif type(size) is int and 0 <= size <= len(binary):
        texts, binary = _strings(binary[:size], limits), binary[size:]
    else:
        raise RequestError(400, "`binary_data_size` is not a number of bytes.")
    _check_shape(name, one.get("shape"), len(texts))
    limits.check_number(len(texts))
    return name, texts, binary


def _flat(data: Any) -> list[str]:
    """Flattens a tensor of one or two dimensions, given as lists of strings."""
    if isinstance(data, list) and all(isinstance(x, list) for x in data):
        data = [text for row in data for text in row]
    if not isinstance(data, list) or not all(isinstance(x, str) for x in data):
        raise RequestError(
            400, "The `data` of an input must be a list of strings."
        )
    return data


def _strings(binary: bytes, limits: Limits) -> list[str]:
    """Reads strings, each after its length in four bytes, little-endian."""
    texts, start = [], 0
    while start < len(binary):
        try:
            (length,) = struct.unpack_from("<I", binary, start)
            part = binary[start + 4 : start + 4 + length]
            if len(part) != length:
                raise ValueError
            texts.append(part.decode("utf-8"))
        except (struct.error, ValueError):
            raise RequestError(
                400, "The binary data are not strings in UTF-8."
            ) from None
        start += 4 + length
        # Not only at the end: there may be millions.
        if len(texts) > limits.texts:
            raise limits.too_many(f"more than {limits.texts}")
    return texts


def _check_shape(name: str, shape: Any, number: int) -> None:
    is_shape = isinstance(shape, list) and all(
        type(x) is int and 0 <= x <= number for x in shape
    )
    # Clients send a batch of strings as `[n]` or `[n, 1]`.
    if not is_shape or len(shape) > 2 or math.prod(shape) != number:
        raise RequestError(
            400,
            f"Input `{name[:40]}` has {number} strings, so its shape must be "
            f"[{number}] or [{number}, 1].",
        )


def _instances(columns: dict[str, list[str]]) -> list[dict[str, str]]:
    lengths = {len(texts) for texts in columns.values()}
    if len(lengths) > 1:
        raise RequestError(400, "All inputs must have the same shape.")
    rows = zip(*columns.values(), strict=True)
    instances = [dict(zip(columns, row, strict=True)) for row in rows]
    for place, instance in enumerate(instances):
        check_instance(place, instance)
    return instances


def _checked(name: str) -> str:
    """Returns a name that the response can repeat, or raises an error."""
    if not is_unicode(name):
        raise RequestError(400, f"A name or id has {HALF}.")
    return name


def _id_of(content: dict[str, Any]) -> str | None:
    given = content.get("id")
    return _checked(given)[:200] if isinstance(given, str) else None


def _names_of_outputs(content: dict[str, Any]) -> tuple[str, ...]:
    outputs = content.get("outputs") or []
    if not isinstance(outputs, list) or not all(
        isinstance(one, dict) and isinstance(one.get("name"), str)
        for one in outputs
    ):
        raise RequestError(
            400, "`outputs` must be a list of objects with a `name`."
        )
    return tuple(_checked(one["name"]) for one in outputs)


def output_tensors(
    answers: Sequence[dict[str, Any]], names: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Converts answers to output tensors, one for each key.

    Strings become BYTES, and numbers, lists and dicts of numbers FP32. Other
    values, such as the tags of each word, become BYTES with JSON.

    Args:
        answers: List of dicts with the same keys, as `Head.decode` returns.
        names: Keys to convert. Default: all.

    Raises:
        RequestError: If the answers do not have one of the names.
    """
    there = list(answers[0])
    for name in names:
        if name not in there:
            raise RequestError(
                400,
                f"There is no output `{name[:40]}`. There are: "
                f"{', '.join(there)}.",
            )
    return [
        {"name": name, **_tensor([answer[name] for answer in answers])}
        for name in names or there
    ]


def _tensor(values: list[Any]) -> dict[str, Any]:
    rows = [list(x.values()) if isinstance(x, dict) else x for x in values]
    widths = {len(row) if isinstance(row, list) else None for row in rows}
    (width,) = widths if len(widths) == 1 else (None,)
    if width and all(_is_number(x) for row in rows for x in row):
        data = [x for row in rows for x in row]
        return {"datatype": "FP32", "shape": [len(rows), width], "data": data}
    if all(map(_is_number, rows)):
        return {"datatype": "FP32", "shape": [len(rows)], "data": rows}
    data = [x if isinstance(x, str) else _json(x) for x in values]
    return {"datatype": "BYTES", "shape": [len(rows)], "data": data}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
