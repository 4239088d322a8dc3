"""Tests that names in an AdapterHub setup must be folders within it."""

import itertools
import json
import shutil

import pytest

from tests.interop import folders
import tf_adapters
from tf_adapters.common.errors import AdapterError

CASE = "adapterhub/bert_fusion"


@pytest.fixture
def setup(tmp_path):
    folder = tmp_path / "fusion"
    shutil.copytree(folders.FIXTURES / CASE, folder)
    # Folders that names with paths would reach.
    shutil.copytree(folder / "rte", tmp_path / "rte")
    return folder


def _refusal(folder):
    with pytest.raises(AdapterError) as raised:
        tf_adapters.load_adapter(folder, folders.encoder(CASE))
    return str(raised.value)


NAMES = ["../rte", "..", ".", "", "rte/../rte", "rte/", "./rte", "a\\b"]
NAMES += ["rte\0", "a.b", "rte,rte2", "x/" * 999]


@pytest.mark.parametrize(
    ("key", "name"),
    [
        *itertools.product(["adapter", "head"], NAMES),
        *itertools.product(["adapter"], [5, None, ["rte"]]),
    ],
)
def test_a_name_that_is_no_folders_within_is_refused(key, name, setup):
    path = setup / "adapter_setup.json"
    config = json.loads(path.read_text())
    if key == "head":
        config["head_setup"] = name
    else:
        config["adapter_setup"]["children"][0]["children"] = [name]
    path.write_text(json.dumps(config))
    refusal = _refusal(setup)
    assert f"adapter_setup.json names the {key} " in refusal
    assert "Expected the name of a folder in" in refusal
    assert len(refusal) < 600


def test_members_whose_names_no_folder_can_have_are_refused(setup):
    children = json.loads((setup / "adapter_setup.json").read_text())[
        "adapter_setup"
    ]["children"]
    key = "adapter_setup.children"
    folders.edit(setup / "adapter_setup.json", key, children * 100)
    refusal = _refusal(setup)
    assert "is a fusion of 200 adapters" in refusal
    assert "at most 255 bytes" in refusal
    assert len(refusal) < 1000


def test_an_absolute_name_is_refused(setup, tmp_path):
    path = setup / "adapter_setup.json"
    folders.edit(path, "head_setup", str(tmp_path / "rte"))
    assert "names the head " in _refusal(setup)


@pytest.mark.parametrize("name", ["rte", "rte,rte2"])
def test_a_folder_within_that_is_a_link_is_refused(name, setup, tmp_path):
    (setup / name).rename(tmp_path / "elsewhere")
    (setup / name).symlink_to(tmp_path / "elsewhere")
    assert f"{setup / name} is a link" in _refusal(setup)


def test_the_heads_folder_that_is_a_link_is_refused(setup, tmp_path):
    (setup / "head").symlink_to(tmp_path / "rte")
    folders.edit(setup / "adapter_setup.json", "head_setup", "head")
    assert f"{setup / 'head'} is a link" in _refusal(setup)


@pytest.mark.parametrize(
    "children", [[], [[]], ["rte"], [{"type": "single"}], "rte", None]
)
def test_a_tree_of_another_form_is_refused(children, setup):
    path = setup / "adapter_setup.json"
    folders.edit(path, "adapter_setup.children", children)
    assert "fusion" in _refusal(setup)


@pytest.mark.parametrize("heads", [True, ["rte"], "rte"])
def test_the_head_of_a_setup_is_read(heads, setup):
    if heads is True:
        for name in ("head_config.json", "model_head.safetensors"):
            (setup / "rte" / name).rename(setup / name)
    folders.edit(setup / "adapter_setup.json", "head_setup", heads)
    model = tf_adapters.load_adapter(setup, folders.encoder(CASE))
    assert model.head is not None


@pytest.mark.parametrize(
    "heads", [["rte", "rte2"], {"type": "BatchSplit", "children": []}]
)
def test_several_heads_of_a_setup_are_refused(heads, setup):
    folders.edit(setup / "adapter_setup.json", "head_setup", heads)
    refusal = _refusal(setup)
    assert "has several heads: " in refusal
    assert "with_head=False" in refusal
    encoder = folders.encoder(CASE)
    assert (
        tf_adapters.load_adapter(setup, encoder, with_head=False).head is None
    )
