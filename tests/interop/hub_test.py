"""Tests the requests to the Hugging Face Hub, in this process."""

import shutil
import types

from huggingface_hub import constants
import pytest

from tests.interop import folders
from tests.interop import hub_double
from tf_adapters.cli import pull
from tf_adapters.cli import push
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop import hub

LORA = folders.FIXTURES / "peft" / "bert_lora"


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serves a Hub that has the repository `me/lora`."""
    files = {path.name: path.read_bytes() for path in LORA.iterdir()}
    with hub_double.serve({"me/lora": files}) as server:
        url = f"{server.address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
        for name, value in {
            "ENDPOINT": server.address,
            "HUGGINGFACE_CO_URL_TEMPLATE": url,
            "HF_HUB_CACHE": str(tmp_path / "hub"),
        }.items():
            monkeypatch.setattr(constants, name, value)
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        monkeypatch.setenv("HF_TOKEN", "hf_token")
        yield server


def test_a_pulled_adapter_is_found_in_the_cache(server):
    assert hub.find_cached("hf://me/lora") is None
    pulled = hub.pull("hf://me/lora")
    assert hub.find_cached("hf://me/lora") == pulled


def test_a_broken_download_can_be_repeated(server, tmp_path, monkeypatch):
    arguments = ["hf://me/lora", str(tmp_path / "here")]
    server.broken = {"adapter_model.safetensors"}
    monkeypatch.setattr("time.sleep", lambda _: None)  # Between trials.
    with pytest.raises(hub.HubError, match="failed: .* Try again"):
        pull.run_pull(None, {}, arguments)
    server.broken = set()
    # Of a download that was killed.
    (tmp_path / "here" / ".pull-x" / "copy").mkdir(parents=True)
    pull.run_pull(None, {}, arguments)
    # Another program may have downloaded more into the cache.
    (hub.find_cached(arguments[0]) / "model.onnx").write_text("other")
    # Without a network, the copy in the cache is used.
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    pull.run_pull(None, {}, [arguments[0], str(tmp_path / "there")])
    for name in ("here", "there"):
        found = {p.name: p.read_bytes() for p in (tmp_path / name).iterdir()}
        assert found == server.repositories["me/lora"]


def test_a_repository_without_an_adapter_is_not_downloaded(server):
    server.repositories["me/model"] = {"model.safetensors": b"large"}
    with pytest.raises(AdapterError, match="There is no adapter at hf://me/mo"):
        hub.pull("hf://me/model")
    assert not any("model.safetensors" in path for path in server.asked)


def test_a_push_replaces_the_files_of_an_earlier_adapter(server):
    files = server.repositories["me/lora"]
    rest = ("README.md", "notes.txt", "other/adapter_config.json")
    for name in ("adapter_setup.json", "head_config.json", *rest):
        files[name] = b"old"
    hub.push(LORA, "hf://me/lora")
    assert sorted(files) == sorted([*(p.name for p in LORA.iterdir()), *rest])


def test_a_new_repository_is_private_or_as_its_owner_wants(server):
    hub.push(LORA, "hf://me/hidden", private=True)
    hub.push(LORA, "hf://me/usual")
    assert server.visibility == {"me/hidden": "private", "me/usual": None}


def test_a_private_push_to_a_public_repository_uploads_nothing(server):
    server.repositories["me/lora"] = {}
    with pytest.raises(AdapterError, match="is public. Nothing was uploaded"):
        hub.push(LORA, "hf://me/lora", private=True)
    assert server.repositories["me/lora"] == {}


def test_a_push_makes_its_branch(server):
    hub.push(LORA, "hf://me/lora@of/mine")
    hub.push(LORA, "hf://me/lora@of/mine")
    assert server.branches == {"main", "v1", "of/mine"}


@pytest.mark.parametrize("revision", ["refs/pr/1", hub_double.COMMIT])
def test_a_push_makes_no_branch_of_that_name(revision, server):
    server.branches.add("refs/pr/1")
    hub.push(LORA, f"hf://me/lora@{revision}")
    assert server.branches == {"main", "v1", "refs/pr/1"}


def test_a_setup_is_pushed_whole_if_a_member_is_called_adapter(
    server, tmp_path
):
    (tmp_path / "adapter_setup.json").write_text(
        '{"adapter_setup": {"type": "Fuse", "children": ["adapter"]}}'
    )
    shutil.copytree(LORA, tmp_path / "adapter")
    options = types.SimpleNamespace(private=False)
    push.run_push(options, {}, [str(tmp_path), "hf://me/setup"])
    names = {"adapter_setup.json"} | {
        f"adapter/{p.name}" for p in LORA.iterdir()
    }
    assert set(server.repositories["me/setup"]) == names
