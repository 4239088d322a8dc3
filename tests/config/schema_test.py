"""The schema of the settings accepts what the library accepts."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from tf_adapters.config import schema

ROOT = Path(__file__).parents[2]
PRESETS = sorted((ROOT / "official_configs/methods").glob("*.yaml"))


def test_the_file_is_as_it_would_be_made():
    path = ROOT / "docs/settings.schema.json"
    assert path.read_text(encoding="utf-8").strip() == schema.text(), (
        "python -m tf_adapters.config.schema > docs/settings.schema.json"
    )


def _faults(values):
    # By way of JSON, as an editor has the schema: tuples are lists there.
    validator = jsonschema.Draft202012Validator(json.loads(schema.text()))
    return [error.message for error in validator.iter_errors(values)]


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_preset_is_accepted(path):
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    values.pop("module", None)  # Where a preset's method is, not a setting.
    assert not _faults(values)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"trian": {}}, "trian"),
        ({"train": {"epoch": 3}}, "epoch"),
        ({"train": {"epochs": "three"}}, "three"),
        ({"train": {"keep": "first"}}, "first"),
        ({"data": {"text": [1]}}, "1"),
        ({"method": 3}, "3"),
    ],
)
def test_mistakes_are_found(values, named):
    (fault,) = _faults(values)
    assert named in fault
