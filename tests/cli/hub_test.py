"""Tests that adapter folders are listed, pushed to the Hub and pulled."""

import errno
import json
import os
from pathlib import Path
import shutil
import subprocess
import sys

import pytest

from tests import commands
from tests import tiny
from tests.interop import folders
from tests.interop import hub_double
import tf_adapters
from tf_adapters.cli import pull as cli_pull
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop import hub_address
from tf_adapters.interop import listing

pytestmark = pytest.mark.integration
ROOT = Path(__file__).parents[2]
LORA = folders.FIXTURES / "peft" / "bert_lora"


def _command(*arguments, cwd, **environment):
    """Runs `tf-adapters` with a Hub address that does not answer."""
    nobody = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(cwd / "hf")}
    return subprocess.run(
        [sys.executable, "-m", "tf_adapters", *map(str, arguments)],
        env={**os.environ, **nobody, **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


def _files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def test_an_adapter_comes_from_the_hub_and_stays_in_its_cache(tmp_path):
    repositories = {"me/lora": {**_files(LORA), "script.py": b"boom"}}
    with hub_double.serve(repositories) as server:
        there = {"HF_ENDPOINT": server.address}
        done = _command("adapters", "hf://me/lora@v1", cwd=tmp_path, **there)
        assert done.returncode == 0, done.stderr
        assert "SEQ_CLS" in done.stdout and "LORA" in done.stdout
        assert "/api/models/me/lora/revision/v1" in server.asked
        assert not any("script.py" in path for path in server.asked)
        done = _command("pull", "hf://me/lora", "here", cwd=tmp_path, **there)
        assert done.returncode == 0, done.stderr
        content = _files(LORA)
        assert {
            name: (tmp_path / "here" / name).read_bytes() for name in content
        } == content
        done = _command("pull", "hf://me/lora", "here", cwd=tmp_path, **there)
        assert done.returncode == 1 and "already exists" in done.stderr
    done = _command("adapters", "hf://me/lora@v1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_adapter_goes_to_the_hub(tmp_path):
    shutil.copytree(LORA, tmp_path / "lora")
    (tmp_path / "lora" / "notes.txt").write_text("private")
    repositories = {}
    with hub_double.serve(repositories) as server:
        there = {"HF_ENDPOINT": server.address}
        push = ("push", "lora", "hf://me/new")
        done = _command(*push, cwd=tmp_path, **there)
        assert done.returncode == 1
        assert "log in" in done.stderr and len(done.stderr.splitlines()) == 1
        done = _command(*push, cwd=tmp_path, **there, HF_TOKEN="hf_token")
        assert done.returncode == 0, done.stderr
        assert f"/me/new/commit/{hub_double.COMMIT}" in done.stdout
    assert repositories["me/new"] == _files(LORA)


def test_training_and_evaluation_take_members_from_the_hub(tmp_path):
    files = _files(folders.FIXTURES / "adapterhub" / "bert_pfeiffer")
    repositories = {"me/nli": files, "you/sst": files}
    flags = ["--task=demo_sentiment", "--method=fusion", "--model_dir=run"]
    flags.append(f"--encoder={commands.ENCODER_OF_TWO_BLOCKS}")
    flags.append("--adapters=hf://me/nli,hf://you/sst@v1")
    flags.append("--params_override=data.max_train_examples=32")
    flags.append("--params_override=data.max_length=16,train.epochs=1")
    with hub_double.serve(repositories) as server:
        there = {"HF_ENDPOINT": server.address}
        done = _command(*flags, cwd=tmp_path, **there)
        assert done.returncode == 0, done.stderr
        assert "/api/models/you/sst/revision/v1" in server.asked
    config = json.loads(
        (tmp_path / "run/adapter/adapter_config.json").read_text()
    )
    assert [m["name"] for m in config["members"]] == ["nli", "sst@v1"]
    addresses = [m["folder"] for m in config["members"]]
    assert addresses == ["hf://me/nli", "hf://you/sst@v1"]
    # Without a network they are in the Hub's cache.
    evaluate = ("--mode=eval", "--model_dir=run")
    done = _command(*evaluate, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "accuracy" in done.stdout
    # A stranger's run names them, but they are not downloaded without request.
    with hub_double.serve(repositories) as server:
        there = {"HF_ENDPOINT": server.address}
        there["HF_HOME"] = str(tmp_path / "another")
        done = _command(*evaluate, cwd=tmp_path, **there)
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
        assert "Nothing was downloaded" in done.stderr
        assert server.asked == []
        # Naming them in the command allows it.
        (allowed,) = [
            word for word in done.stderr.split() if word[:11] == "--adapters="
        ]
        assert allowed == "--adapters=hf://me/nli,hf://you/sst@v1"
        done = _command(*evaluate, allowed, cwd=tmp_path, **there)
        assert done.returncode == 0, done.stderr
        assert "/api/models/you/sst/revision/v1" in server.asked
        push = ("push", "run", "hf://me/fusion")
        done = _command(*push, cwd=tmp_path, **there, HF_TOKEN="hf_token")
        assert done.returncode == 0, done.stderr
    pushed = repositories["me/fusion"]
    assert sorted(pushed) == sorted(_files(tmp_path / "run/adapter"))
    folders_here = (str(tmp_path), str(Path(commands.ENCODER_OF_TWO_BLOCKS)))
    for content in pushed.values():
        assert not any(place.encode() in content for place in folders_here)
    assert b"hf://you/sst@v1" in pushed["adapter_config.json"]


_PROGRAM = """
import numpy as np
import tf_adapters
from safetensors.numpy import save_file
from tests.interop import folders

encoder = folders.encoder("x/bert")
inputs = {
    "token_ids": np.array([[7, 9, 11]]),
    "padding_mask": np.ones((1, 3), "int32"),
    "segment_ids": np.zeros((1, 3), "int32"),
}
loaded = tf_adapters.load_adapter("hf://me/lora@v1", encoder)
here = tf_adapters.load_adapter(folders.FIXTURES / "peft/bert_lora", encoder)
np.testing.assert_array_equal(loaded(inputs), here(inputs))
stack = tf_adapters.Stack("hf://me/lora", tf_adapters.methods.Pfeiffer())
model = tf_adapters.compose(encoder, stack)
print(*(type(member.method).__name__ for member in model.members))
"""


def test_a_program_loads_and_composes_addresses(tmp_path):
    with hub_double.serve({"me/lora": _files(LORA)}) as server:
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env={
                **os.environ,
                "HF_ENDPOINT": server.address,
                "HF_HOME": str(tmp_path / "hf"),
            },
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["LoRA"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("pull", "hf://me/lora", "here"), "does not answer"),
        (("pull", "me/lora", "here"), "Expected hf://owner/name"),
        (("push", "nowhere", "hf://me/lora"), "not an adapter folder"),
        (("push", LORA, "hf://me/lora"), "nothing was uploaded"),
        (("adapters", "nowhere"), "no folder"),
        (("adapters", "."), "There is no adapter in"),
        (
            ("--task=demo_sentiment", "--stack_on=hf://me/lora"),
            "hf://me/lora is not on this machine",
        ),
    ],
)
def test_mistakes_end_in_one_sentence(arguments, sentence, tmp_path):
    done = _command(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert sentence in done.stderr and len(done.stderr.splitlines()) == 1


def test_what_lies_in_a_folder_is_listed(tmp_path):
    done = _command("adapters", folders.FIXTURES, cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert len(lines) == 1 + len(
        list(folders.FIXTURES.rglob("adapter_config.json"))
    )
    line = next(line for line in lines if "adapterhub/bert_lora " in line)
    assert line.split() == [
        "adapterhub/bert_lora", "task", "lora", "8", "-", "bert", "adapterhub",
    ]  # fmt: skip


@pytest.mark.parametrize("content", ["pfeiffer", ["pfeiffer"]])
def test_a_damaged_folder_among_them_is_named(content, tmp_path):
    path = tmp_path / "task" / "adapter_config.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"config": content}))
    with pytest.raises(AdapterError, match="task.* is damaged"):
        listing.list_adapters(tmp_path)


@pytest.mark.parametrize(
    ("metrics", "text"),
    [
        ("accuracy 0.91", "accuracy 0.91"),
        (0.91, "0.91"),
        ({"accuracy": 0.91, "by": "me"}, "accuracy 0.91"),
        (None, "-"),
    ],
)
def test_metrics_of_a_program_are_listed(metrics, text, tmp_path):
    model = tf_adapters.adapt(tiny.encoder(), tf_adapters.methods.BitFit())
    details = {"metrics": metrics}
    tf_adapters.save_adapter(model, tmp_path / "adapter", details)
    (listed,) = listing.list_adapters(tmp_path)
    assert listed.metrics == text


def test_a_name_has_nothing_that_a_folder_cannot_be_called():
    assert hub_address.name_of("hf://o/n.v1@refs/pr/1") == "o/n_v1@refs-pr-1"
    assert hub_address.name_of("hf://o/n") == "o/n"


def test_a_folder_on_another_disk_than_its_parent(tmp_path, monkeypatch):
    rename = Path.rename

    def on_one_disk(path, target):
        if target.parent not in path.parents:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", on_one_disk)
    (tmp_path / "cached").mkdir()
    (tmp_path / "cached" / "adapter_config.json").write_text("{}")
    cli_pull._copy(tmp_path / "cached", tmp_path / "here")
    found = [path.name for path in (tmp_path / "here").iterdir()]
    assert found == ["adapter_config.json"]
