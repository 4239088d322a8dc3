"""Converts the settings to a JSON schema, for editors that complete YAML.

The following command writes the schema:

    python -m tf_adapters.config.schema > docs/settings.schema.json
"""

import dataclasses
import json
import types
import typing

from tf_adapters.config import describe
from tf_adapters.config.settings import Config

_TYPES: dict[type, dict[str, object]] = {
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    types.NoneType: {"type": "null"},
}
# The setting `method` is a name, or a mapping with a `name` and the method's
# own settings.
_METHOD = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"name": {"type": "string"}},
        },
    ]
}


def schema() -> dict[str, object]:
    """Returns the JSON schema of a YAML file for `--config_file`.

    A file may leave out any setting, because missing settings come from
    presets, flags and defaults.
    """
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Settings of tf_adapters",
        **_of_class(Config),
    }


def _of_class(cls: typing.Any) -> dict[str, object]:
    meanings = describe.attributes(cls)
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            field.name: _of_field(field, meanings[field.name])
            for field in dataclasses.fields(cls)
        },
    }


def _of_field(field: typing.Any, meaning: str) -> dict[str, object]:
    if dataclasses.is_dataclass(field.type):
        return _of_class(field.type)
    described = {**_of_type(field.type), "description": meaning}
    if field.name == "method":
        described |= _METHOD
    if field.default is not dataclasses.MISSING:
        described["default"] = field.default
    return described


def _of_type(kind: typing.Any) -> dict[str, object]:
    """Returns the JSON schema for the type annotation of a setting."""
    arguments = typing.get_args(kind)
    origin = typing.get_origin(kind)
    if kind is typing.Any:
        return {}
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return {"type": "array", "items": _of_type(arguments[0])}
    if origin in (types.UnionType, typing.Union):
        return {"anyOf": [_of_type(one) for one in arguments]}
    return _TYPES[kind]


def text() -> str:
    """Returns the text of docs/settings.schema.json."""
    return json.dumps(schema(), indent=2)


if __name__ == "__main__":
    print(text())
