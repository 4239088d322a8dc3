"""Tests tables and names in the documents, and that the site builds."""

import os
from pathlib import Path
import re
import subprocess
import sys

import pytest
import yaml

import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import presets
from tf_adapters.config import resolve
from tf_adapters.encoders.encoder import Encoder
from tf_adapters.encoders.keras_hub_families import fields_of
from tf_adapters.encoders.load import ENCODERS
from tf_adapters.encoders.load import load_encoder
from tf_adapters.encoders.mpnet import MPNetBackbone
from tf_adapters.models.adapter_model import AdapterModel
from tf_adapters.tasks import task_file

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs/methods.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _rows():
    """Yields names and weights from the table of methods of other papers."""
    for line in TEXT.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 5 and cells[2].endswith(".py`"):
            names = re.findall(r"`([^`]+)`", cells[0])
            weights = [int(n.replace(",", "")) for n in cells[3].split(" and ")]
            yield names, weights


WEIGHTS = [
    (name, count)
    for names, weights in _rows()
    for name, count in zip(names, weights, strict=True)
]


README = (ROOT / "README.md").read_text(encoding="utf-8")
# Rows of one method whose cells start with a number, on MiniLM and on MPNet.
COUNT = r"([\d,]+)(?: a block)? \|"
SIZES = re.findall(rf"^\| `(\w+)` \| .* \| {COUNT} {COUNT}$", README, re.M)
# Weights that depend on more than the method, or on the end of training.
OTHER_SIZES = ("fusion", "diff_pruning")


@pytest.mark.parametrize(
    "name", sorted({*methods.METHODS, *presets.preset_names()})
)
def test_every_method_is_there(name):
    assert f"`{name}`" in TEXT or f"--method={name}`" in TEXT


def test_names_for_those_who_come_from_elsewhere_exist():
    text = (ROOT / "docs/coming_from.md").read_text(encoding="utf-8")
    places = {
        r"tf_adapters\.heads\.(\w+)": tf_adapters.heads,
        r"methods\.(\w+)\(?": methods,
        r"tf_adapters\.(\w+)": tf_adapters,
    }
    for pattern, module in places.items():
        names = set(re.findall(pattern, text)) - {"md"}
        assert names and not [n for n in names if not hasattr(module, n)]
    for name in re.findall(r"presets? `(\w+)`", text):
        assert name in presets.preset_names()


def test_the_guide_has_the_keys_of_a_task_file():
    text = (ROOT / "docs/guide.md").read_text(encoding="utf-8")
    section = text.partition("## A task of your own")[2].partition("\n## ")[0]
    keys = section.partition("files: {")[2].partition("```")[2]
    named = re.findall(r"`([a-z_]+)`", keys)
    assert set(named) - {"classification"} == set(task_file._KEYS)


def test_presets_for_sentence_vectors_exist():
    text = (ROOT / "docs/encoders.md").read_text(encoding="utf-8")
    section = text.partition("## KerasHub's presets")[2].partition("\n## ")[0]
    names = re.findall(r"`([a-z0-9_.]+_[a-z0-9_.]+)`", section)
    assert len(names) > 20
    assert not set(names) - set(ENCODERS)


@pytest.mark.slow
def test_the_site_is_made_without_a_warning(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"]
    command += [f"--site-dir={tmp_path}"]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    page = (tmp_path / "api/index.html").read_text(encoding="utf-8")
    assert "An encoder with the slots of a method" in page


def _base_size():
    """Returns an encoder with the sizes of all-mpnet-base-v2."""
    backbone = MPNetBackbone(30527, 12, 12, 768, 3072)
    return Encoder("base", backbone=backbone, **fields_of(backbone))


@pytest.mark.slow
@pytest.mark.parametrize("size", ["minilm", "base"])
def test_the_readme_counts_weights(size):
    if size == "base":
        encoder = _base_size()
    else:
        encoder, _ = load_encoder("minilm", with_tokenizer=False)
    head = heads.Classification(("no", "yes"))
    counted, expected = {}, {}
    for name, *counts in SIZES:
        if name in OTHER_SIZES:
            continue
        config = resolve.resolve_config(
            {"task": "sst2", "method": {"name": name}}
        )
        model = tf_adapters.adapt(encoder, config.method, head)
        counted[name] = sum(
            v.value.shape.num_elements()
            for key, v in model.trained_variables().items()
            if not key.startswith("head")
        )
        expected[name] = int(counts[size == "base"].replace(",", ""))
    assert counted == expected and len(expected) >= 9


@pytest.mark.slow
@pytest.mark.parametrize(("name", "count"), WEIGHTS)
def test_so_many_weights_train_on_minilm(name, count):
    config = resolve.resolve_config({"task": "sst2", "method": {"name": name}})
    encoder, _ = load_encoder("minilm", with_tokenizer=False)
    variables = AdapterModel(encoder, config.method).trained_variables()
    assert count == sum(
        v.value.shape.num_elements() for v in variables.values()
    )


def test_the_citation_is_of_this_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert citation["version"] == tf_adapters.__version__
    cited = {reference["url"] for reference in citation["references"]}
    assert cited == set(re.findall(r"https://arxiv\.org/abs/[\d.]+", README))
