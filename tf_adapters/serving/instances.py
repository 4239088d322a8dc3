"""Reads and writes the JSON bodies of TensorFlow Serving's REST API.

A request is `{"instances": [...]}`, and a response `{"predictions": [...]}`. An
instance is a text, a list of the texts that are read together, or a dict from
the names of the text fields to texts.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from typing import Any
from typing import NoReturn

from tf_adapters.common.text_files import is_unicode
from tf_adapters.serving.request_error import RequestError

if TYPE_CHECKING:
    from tf_adapters.serving.limits import Limits

# JSON can write one, but it has no form in UTF-8.
HALF = "half of a surrogate pair, which is not a character"
_EXAMPLE = '{"instances": ["a fine film", "a dull one"]}'


def parse_object(body: bytes) -> dict[str, Any]:
    """Parses a JSON object, such as the body of a request.

    Args:
        body: JSON in UTF-8. If it is empty, the result is an empty dict.

    Raises:
        RequestError: If the body is not a JSON object in UTF-8, or holds values
            that JSON does not define, such as NaN.
    """
    if not body.strip():
        return {}
    try:
        content = json.loads(body.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise RequestError(
            400, f"The body is not UTF-8, at byte {error.start}."
        ) from None
    except RecursionError:
        raise RequestError(400, "The body is nested too deeply.") from None
    except ValueError as error:
        raise RequestError(400, f"The body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise RequestError(
            400,
            "Expected a JSON object as the body. Received: "
            f"{type(content).__name__}",
        )
    return content


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def read_instances(body: bytes, limits: Limits) -> list[Any]:
    """Returns the instances in the body of a `:predict` request.

    Args:
        body: JSON in UTF-8.
        limits: `Limits`, of which only the number of instances is checked.

    Raises:
        RequestError: If the body has another form, or too many instances.
    """
    content = parse_object(body)
    instances = content.get("instances")
    if not isinstance(instances, list):
        received = f"the keys {[str(key)[:40] for key in list(content)[:5]]}"
        if "instances" in content:
            received = f"`instances` of type {type(instances).__name__}"
        raise RequestError(
            400,
            f"Expected a list of instances, as in {_EXAMPLE}. Received: "
            f"{received}",
        )
    limits.check_number(len(instances))
    for place, instance in enumerate(instances):
        check_instance(place, instance)
    return instances


def check_instance(place: int, instance: Any) -> None:
    """Raises a `RequestError` if an instance has a form that no adapter takes.

    Args:
        place: Index of the instance in the request, for the message.
        instance: A parsed JSON value.

    Raises:
        RequestError: If the instance is not a string, or a list or dict of
            strings or of lists of strings, or if a string is not valid Unicode.
    """
    values = instance
    if isinstance(instance, str):
        values = [instance]
    elif isinstance(instance, dict):
        values = list(instance.values())
    if not isinstance(values, list) or not all(map(_is_text, values)):
        raise RequestError(
            400,
            f"Instance {place} (the first is 0) must be a text, a list of "
            "texts, or an object with a text for each field. Received: "
            f"{type(instance).__name__}",
        )
    texts = (x if isinstance(x, str) else "".join(x) for x in values)
    check_unicode(place, "".join(texts))


def _is_text(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(word, str) for word in value)
    return isinstance(value, str)


def check_unicode(place: int, text: str) -> None:
    r"""Raises a `RequestError` if a text has half of a surrogate pair.

    JSON can write one, as in `"\ud800"`, but it has no form in UTF-8.

    Args:
        place: Index of the instance in the request, for the message.
        text: The text.
    """
    if not is_unicode(text):
        raise RequestError(
            400,
            f"Instance {place} (the first is 0) has {HALF}.",
        )
