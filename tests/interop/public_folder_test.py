"""Tests that pushed files contain no local paths."""

import dataclasses
import json
from pathlib import Path
import shutil

import pytest

from tests import commands
from tests.interop import folders
import tf_adapters
from tf_adapters import heads
from tf_adapters.common.errors import AdapterError
from tf_adapters.encoders.load import load_encoder
from tf_adapters.interop import hub_address
from tf_adapters.interop import public_folder
from tf_adapters.interop import public_names
from tf_adapters.methods import Pfeiffer

ENCODER = commands.ENCODER_OF_TWO_BLOCKS
PFEIFFER = folders.FIXTURES / "adapterhub" / "bert_pfeiffer"


def _content(folder):
    """Returns a dict from name to the bytes that would be pushed."""
    return {
        name: found if isinstance(found, bytes) else found.read_bytes()
        for name, found in public_folder.public_files(folder).items()
    }


@pytest.fixture(scope="module")
def encoder():
    return load_encoder(ENCODER, with_tokenizer=False)[0]


@pytest.fixture(scope="module")
def fusion(encoder, tmp_path_factory):
    """Saves a fusion of two adapters in local folders."""
    here = tmp_path_factory.mktemp("secret_place")
    for name in ("one", "two"):
        shutil.copytree(PFEIFFER, here / name)
    members = [here / "one", here / "two"]
    head = heads.Classification(labels=("/no", "/yes"))
    model = tf_adapters.fuse(encoder, head=head, adapters=members)
    details = {
        "task": "films",
        "data": str(here / "films.csv"),
        "merged": {
            "how": "mean",
            "adapters": ["runs/x", "hf://me/y"],
            "head_of": str(here / "one"),
        },
    }
    tf_adapters.save_adapter(model, here / "fusion", details)
    return here / "fusion"


def test_a_fusion_names_its_encoder_and_members_without_their_places(fusion):
    (fusion / "notes.txt").write_text("private")
    (fusion / "trainer_state.json").write_text('{"best": "/data/me"}')
    content = _content(fusion)
    names = ["README.md", "adapter.safetensors", "adapter_config.json"]
    assert sorted(content) == sorted(names)
    places = [str(fusion.parent), str(Path(ENCODER).parent), "runs/x", ".."]
    for name in ("README.md", "adapter_config.json"):
        for place in places:
            assert place in (fusion / name).read_text() or place == ".."
            assert place not in content[name].decode()
    config = json.loads(content["adapter_config.json"])
    assert config["encoder"]["name"] == Path(ENCODER).name
    assert [m["folder"] for m in config["members"]] == ["one", "two"]
    assert config["head"]["labels"] == ["/no", "/yes"]
    assert config["details"] == {
        "task": "films",
        "data": "films.csv",
        "merged": {
            "how": "mean",
            "adapters": ["x", "hf://me/y"],
            "head_of": "one",
        },
    }
    assert public_folder.local_members(fusion) == ["one", "two"]


def test_what_is_pushed_loads_where_its_members_are_named(
    fusion, encoder, tmp_path
):
    for name, content in _content(fusion).items():
        (tmp_path / name).write_bytes(content)
    members = [fusion.parent / "one", fusion.parent / "two"]
    with pytest.raises(tf_adapters.UserError, match="adapter `one` is no long"):
        tf_adapters.load_adapter(tmp_path, encoder)
    model = tf_adapters.load_adapter(tmp_path, encoder, members)
    assert [member.name for member in model.members] == ["one", "two"]


@pytest.mark.parametrize("form", ["adapterhub", "peft"])
def test_an_export_names_no_place(form, encoder, tmp_path):
    method = Pfeiffer(units=2)
    if form == "peft":
        method = tf_adapters.methods.LoRA(rank=2)
    model = tf_adapters.adapt(encoder, method)
    tf_adapters.save_adapter(model, tmp_path / "films", format=form)
    for path in (tmp_path / "films").rglob("*.*"):
        if path.suffix in (".json", ".md"):
            assert str(Path(ENCODER).parent) not in path.read_text()
    card = (tmp_path / "films" / "README.md").read_text()
    assert f"an adapter for `{Path(ENCODER).name}`" in card
    assert 'from_pretrained("path/of/the/encoder")' in card or form == "peft"


@pytest.mark.parametrize(
    ("name", "hub_id"),
    [
        ("minilm", "sentence-transformers/all-MiniLM-L6-v2"),
        ("hf://owner/name", "owner/name"),
        # KerasHub's alone.
        ("bert_tiny_en_uncased", None),
    ],
)
def test_the_card_of_an_export_has_the_encoders_id_on_the_hub(
    name, hub_id, encoder, tmp_path
):
    encoder = dataclasses.replace(encoder, name=name)
    model = tf_adapters.adapt(encoder, Pfeiffer(units=2))
    tf_adapters.save_adapter(model, tmp_path / "films", format="adapterhub")
    card = (tmp_path / "films" / "README.md").read_text()
    source = hub_id or "path/of/the/encoder"
    assert f'from_pretrained("{source}")' in card
    assert f"an adapter for `{hub_id or name}`" in card
    config = json.loads((tmp_path / "films/adapter_config.json").read_text())
    assert config["model_name"] == (hub_id or "")


def test_a_folder_of_another_library_is_pushed_without_its_places(tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(folders.FIXTURES / "peft" / "bert_lora", folder)
    (folder / "training_args.bin").write_bytes(b"/data/me")
    place = "/data/me/models/bert"
    pattern = r".*\.(0|1)\.(query|value)"
    config = folder / "adapter_config.json"
    for key, value in {
        "base_model_name_or_path": place,
        "target_modules": pattern,
        "corda_config": {"cache_file": "/data/me/cache"},
        "prompt_tuning_init_text": "/classify",
    }.items():
        folders.edit(config, key, value)
    (folder / "README.md").write_text(f"base_model: {place}\n")
    content = _content(folder)
    assert "training_args.bin" not in content
    assert content["README.md"] == b"base_model: bert\n"
    found = json.loads(content["adapter_config.json"])
    assert found["base_model_name_or_path"] == "bert"
    assert found["target_modules"] == pattern
    assert found["corda_config"] == {"cache_file": "cache"}
    assert found["prompt_tuning_init_text"] == "/classify"


@pytest.mark.parametrize(
    "case", ["adapterhub/bert_fusion", "adapterhub/bert_pfeiffer"]
)
def test_a_set_up_is_pushed_with_its_adapters_only(case, tmp_path):
    original = folders.FIXTURES / case
    folder = shutil.copytree(original, tmp_path / "adapter")
    for name in ("checkpoint-500", "secret_client", "rte,secret_client"):
        shutil.copytree(PFEIFFER, folder / name)
    assert _content(folder) == {
        path.relative_to(original).as_posix(): path.read_bytes()
        for path in original.rglob("*.*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("minilm", "minilm"),
        ("bert_base_en_uncased", "bert_base_en_uncased"),
        ("hf://owner/name", "hf://owner/name"),
        ("gs://bucket/run", "gs://bucket/run"),
        ("/data/me/bert", "bert"),
        ("/data/me/bert/", "bert"),
        ("runs/full/encoder", "encoder"),
        ("../bert", "bert"),
        ("~/bert", "bert"),
        ("file:///data/me/bert", "bert"),
        ("C:\\Users\\me\\bert", "bert"),
    ],
)
def test_the_public_name_of_an_encoder(name, public):
    assert public_names.public_name(name) == public


def test_an_id_on_the_hub_is_no_place(tmp_path, monkeypatch):
    assert public_names.public_id("google/electra") == "google/electra"
    assert public_names.public_id("/google/electra") == "electra"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "google" / "electra").mkdir(parents=True)
    assert public_names.public_id("google/electra") == "electra"


@pytest.mark.parametrize(
    ("name", "hub_id"),
    [
        ("minilm", "sentence-transformers/all-MiniLM-L6-v2"),
        ("hf://owner/name", "owner/name"),
        ("bert_base_en_uncased", None),
        ("/data/me/bert", None),
    ],
)
def test_the_hubs_id_of_an_encoder(name, hub_id):
    assert public_names.hub_id(name) == hub_id


@pytest.mark.parametrize(
    "address", ["hf://../name", "hf://o/n@../../x", "hf://o/..", "hf://o"]
)
def test_an_address_leads_out_of_nothing(address):
    with pytest.raises(
        tf_adapters.UserError, match="is not an adapter's address"
    ):
        hub_address.parse_address(address)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "key").write_text("private")
    folder = shutil.copytree(PFEIFFER, tmp_path / "adapter")
    (folder / "README.md").symlink_to("../key")
    with pytest.raises(AdapterError, match="README.md is a link"):
        public_folder.public_files(folder)


def test_links_of_the_hub_cache_are_followed(tmp_path):
    blobs = shutil.copytree(PFEIFFER, tmp_path / "blobs")
    folder = tmp_path / "snapshots" / "1a2b"
    folder.mkdir(parents=True)
    for blob in blobs.iterdir():
        (folder / blob.name).symlink_to(f"../../blobs/{blob.name}")
    assert "adapter_config.json" in public_folder.public_files(folder)
