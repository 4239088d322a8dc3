"""Tests strategies by name, and the errors if their devices are missing."""

import functools
import json
import socket
import time
import types
import urllib.error

import pytest
import tensorflow as tf

from tests import commands
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.runs import strategies
from tf_adapters.training import distribution
from tf_adapters.training import workers

SETTINGS = {
    "task": "demo_sentiment",
    "encoder": commands.ENCODER,
    "method": "houlsby",
    "data": {
        "max_train_examples": 40,
        "max_length": 24,
        "batching": "fixed",
        "length_buckets": [8, 16],
    },
    "train": {"epochs": 1, "batch_size": 16, "steps_per_loop": 2},
}
ON_TPU = {**SETTINGS, "distribution_strategy": "tpu", "tpu": "node-1"}


@pytest.fixture
def tpu(monkeypatch):
    """Replaces the TPU functions; returns the list of calls to them."""
    asked = []

    def note(name, value=None):
        def call(*args, **kwargs):
            asked.append((name, *kwargs.values()))
            return value

        return call

    class Cpu(tf.distribute.OneDeviceStrategy):
        def __init__(self, resolver):
            asked.append(("strategy",))
            super().__init__("/cpu:0")

    resolvers = tf.distribute.cluster_resolver
    found = types.SimpleNamespace(cluster_spec=lambda: tf.train.ClusterSpec({}))
    monkeypatch.setattr(resolvers, "TPUClusterResolver", note("resolve", found))
    monkeypatch.setattr(
        tf.config, "experimental_connect_to_cluster", note("connect")
    )
    monkeypatch.setattr(
        tf.tpu.experimental, "initialize_tpu_system", note("initialize")
    )
    monkeypatch.setattr(tf.distribute, "TPUStrategy", Cpu)
    # Forgotten afterwards, and only these: what other tests keep, they share.
    kept = functools.cache(distribution._kept.__wrapped__)
    monkeypatch.setattr(distribution, "_kept", kept)
    return asked


def test_a_tpu_has_no_float16():
    config = resolve.resolve_config(
        ON_TPU, {"train": {"precision": "mixed_float16"}}
    )
    with pytest.raises(ConfigError, match="--precision=mixed_bfloat16"):
        strategies.strategy_of(config)


@pytest.mark.parametrize("name", ["one_device", "mirrored"])
def test_a_process_has_one_strategy_of_a_kind(name):
    """Two loops would number their sums over replicas alike and mix them up."""
    one = distribution.make_strategy(name)
    assert distribution.make_strategy(name, "") is one
    assert (
        strategies.strategy_of(
            resolve.resolve_config({**SETTINGS, "distribution_strategy": name})
        )
        is one
    )


@pytest.mark.slow
def test_the_whole_path_of_a_tpu(tpu, tmp_path, capsys):
    """Runs a command from its flags to its result on a simulated device."""
    assert commands.run(tmp_path / "tpu", ON_TPU) == 0
    # Once, though several parts of the program ask for the strategy.
    assert tpu == [
        ("resolve", "node-1"),
        ("connect",),
        ("initialize",),
        ("strategy",),
    ]
    assert commands.run(tmp_path / "cpu", SETTINGS) == 0
    results = [
        json.loads((tmp_path / name / "result.json").read_text())
        for name in ("tpu", "cpu")
    ]
    for key in ("validation", "test", "steps", "examples"):
        assert results[0][key] == results[1][key]
    # What a TPU trained is evaluated on any machine.
    capsys.readouterr()
    assert commands.run(tmp_path / "tpu", mode="eval") == 0
    assert len(tpu) == 4
    # The same run, on a TPU of another name.
    again = {**ON_TPU, "tpu": "node-2"}
    assert commands.run(tmp_path / "tpu", again) == 0
    assert "finished; --overwrite" in capsys.readouterr().out


def test_shapes_that_change_are_refused_on_a_tpu(tpu, tmp_path, capsys):
    grouped = {**SETTINGS["data"], "batching": "grouped"}
    assert commands.run(tmp_path, {**ON_TPU, "data": grouped}) == 1
    assert "data.batching=fixed" in capsys.readouterr().err
    assert tpu == []


@pytest.mark.slow
def test_a_fusion_on_a_tpu_trains_its_members(tpu, tmp_path, capsys):
    """In the same process, as commands of their own would train them."""
    for task in ("rte", "mrpc"):
        for split, count in (("train", 40), ("dev", 16)):
            rows = [
                {"sentence1": f"a{n} b", "sentence2": "c", "label": n % 2}
                for n in range(count)
            ]
            path = tmp_path / "data" / task / f"{split}.jsonl"
            commands.write_rows(path, rows)
    fusion = {
        **ON_TPU,
        "task": "rte",
        "method": "fusion",
        "data": {**SETTINGS["data"], "data_dir": str(tmp_path / "data")},
        "members": {
            "tasks": ["rte", "mrpc"],
            "settings": {"train": {"epochs": 1, "batch_size": 16}},
        },
    }
    assert commands.run(tmp_path / "fusion", fusion) == 0
    assert "Training the adapter of mrpc" in capsys.readouterr().out
    config = tmp_path / "fusion/adapter/adapter_config.json"
    members = json.loads(config.read_text())["members"]
    assert [member["name"] for member in members] == ["rte", "mrpc"]
    # A command of its own trains the same adapter, on any device.
    (member,) = (tmp_path / "members").glob("*/mrpc")
    alone = {**fusion, "task": "mrpc", "method": "pfeiffer"}
    alone |= fusion["members"]["settings"]
    alone |= {"members": {}, "distribution_strategy": "one_device", "tpu": ""}
    assert commands.run(tmp_path / "alone", alone) == 0
    results = [
        json.loads((folder / "result.json").read_text())
        for folder in (member, tmp_path / "alone")
    ]
    for key in ("validation", "steps", "trained_weights"):
        assert results[0][key] == results[1][key]
    # Another fusion finds the finished members.
    capsys.readouterr()
    other = {**fusion, "train": {"epochs": 2}}
    assert commands.run(tmp_path / "other", other) == 0
    assert "Training the adapter" not in capsys.readouterr().out
    assert len(tpu) == 4


@pytest.mark.parametrize(
    "error",
    [
        ValueError("Please provide a TPU Name to connect to."),
        urllib.error.URLError("Name or service not known"),
        tf.errors.NotFoundError(None, None, "No TPU devices.\nMore lines"),
    ],
)
def test_a_tpu_that_is_not_there(tpu, monkeypatch, tmp_path, capsys, error):
    def fail(tpu):
        raise error

    monkeypatch.setattr(
        tf.distribute.cluster_resolver, "TPUClusterResolver", fail
    )
    assert commands.run(tmp_path, ON_TPU) == 1
    message = capsys.readouterr().err
    assert "There is no TPU at --tpu=node-1" in message
    assert "`local` on its own machine" in message
    assert "More lines" not in message


def test_a_tpu_that_does_not_answer(tpu, monkeypatch):
    """Neither who knows its name, nor one of its hosts."""
    resolvers = tf.distribute.cluster_resolver
    monkeypatch.setattr(distribution, "_SECONDS_TO_ANSWER", 0.1)
    monkeypatch.setattr(
        resolvers, "TPUClusterResolver", lambda tpu: time.sleep(2)
    )
    with pytest.raises(ConfigError, match="not answer within 0.1 seconds"):
        distribution.make_strategy("tpu", "node-1")
    with socket.socket() as free:
        free.bind(("localhost", 0))
        hosts = {"worker": [f"localhost:{free.getsockname()[1]}"]}
        found = types.SimpleNamespace(
            cluster_spec=lambda: tf.train.ClusterSpec(hosts)
        )
        monkeypatch.setattr(resolvers, "TPUClusterResolver", lambda tpu: found)
        monkeypatch.setattr(distribution, "_SECONDS_TO_ANSWER", 60)
        with pytest.raises(ConfigError, match="no TPU at .*refused"):
            distribution.make_strategy("tpu", "node-1")


def test_a_tpu_compiles_always(tpu):
    config = resolve.resolve_config(ON_TPU, {"train": {"jit_compile": False}})
    with pytest.raises(ConfigError, match="compiled programs only"):
        strategies.strategy_of(config)
    assert tpu == []


def test_an_address_where_nothing_answers():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        address = f"grpc://localhost:{free.getsockname()[1]}"
        with pytest.raises(ConfigError, match="no TPU at .*refused"):
            distribution.make_strategy("tpu", address)


@pytest.mark.parametrize("value", [None, "{", "[]", '{"cluster": {}}'])
def test_without_a_cluster_it_says_what_to_set(monkeypatch, value):
    monkeypatch.delenv("TF_CONFIG", raising=False)
    if value is not None:
        monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(ConfigError, match="TF_CONFIG on each worker"):
        distribution.make_strategy("multi_worker_mirrored")


@pytest.mark.parametrize(
    ("worker", "task", "reason"),
    [
        (["localhost:1"], {}, "must also specify `task_type`"),
        (
            ["localhost:1"],
            {"task": {"type": "worker", "index": 1}},
            "maximum id",
        ),
        (
            "localhost:1",
            {"task": {"type": "worker", "index": 0}},
            "must be a list",
        ),
    ],
    ids=["no_task", "large_index", "string"],
)
def test_a_wrong_place_in_a_cluster_is_answered_in_a_sentence(
    monkeypatch, worker, task, reason
):
    value = json.dumps({"cluster": {"worker": worker}, **task})
    monkeypatch.setenv("TF_CONFIG", value)
    with pytest.raises(ConfigError, match=f"TF_CONFIG on each .*{reason}"):
        distribution.make_strategy("multi_worker_mirrored")


def test_workers_send_more_than_a_message_holds(monkeypatch):
    monkeypatch.setattr(workers, "_AT_ONCE", 3)
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    sizes, gather = [], workers.gather_bytes

    def note(strategy, content):
        sizes.append(len(content))
        return gather(strategy, content)

    monkeypatch.setattr(workers, "gather_bytes", note)
    for content in (b"", b"abc", b"abcdefgh"):
        assert workers.broadcast_from_chief(strategy, content) == content
    assert sizes == [3, 3, 3, 2]
