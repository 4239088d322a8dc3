"""What the documents say of methods is so."""

from pathlib import Path
import re

import pytest

from tf_adapters import methods
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.encoders.load import load_encoder
from tf_adapters.models.adapter_model import AdapterModel

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/methods.md").read_text(encoding="utf-8")


def _rows():
    """Yields names, file, lines and weights of the table of other papers."""
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and cells[2].endswith(".py`"):
            names = re.findall(r"`([^`]+)`", cells[0])
            weights = [int(n.replace(",", "")) for n in cells[4].split(" and ")]
            yield names, cells[2].strip("`"), cells[3], weights


WEIGHTS = [
    (name, count)
    for names, _, _, weights in _rows()
    for name, count in zip(names, weights, strict=True)
]


@pytest.mark.parametrize(
    "name", sorted({*methods.METHODS, *presets.preset_names()})
)
def test_every_method_is_there(name):
    assert f"`{name}`" in TEXT or f"--method={name}`" in TEXT


@pytest.mark.parametrize(
    ("file", "lines"), [(f, n) for _, f, n, _ in _rows() if n]
)
def test_the_files_have_so_many_lines(file, lines):
    source = ROOT / "tf_adapters/methods" / file
    assert len(source.read_text(encoding="utf-8").splitlines()) == int(lines)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), WEIGHTS)
def test_so_many_weights_train_on_minilm(name, count):
    config = resolve.resolve_config({"task": "sst2", "method": {"name": name}})
    encoder, _ = load_encoder("minilm", with_tokenizer=False)
    variables = AdapterModel(encoder, config.method).trained_variables()
    assert count == sum(
        v.value.shape.num_elements() for v in variables.values()
    )
