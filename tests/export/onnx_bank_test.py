"""Tests that one ONNX file answers like the models of its tasks."""

import dataclasses
import json
import subprocess
import sys
import types

from keras import ops
import numpy as np
import onnx
import onnxruntime
import pytest

from tests.export import conftest
from tests.export import head_models
from tests.export.conftest import SENTENCES
from tests.export.conftest import make_run
import tf_adapters
from tf_adapters import heads
from tf_adapters import tasks
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import ConfigError
from tf_adapters.config import resolve
from tf_adapters.data.tokens import packer_choice
from tf_adapters.data.tokens.python_packing import PythonPacker
from tf_adapters.export import bank_answers
from tf_adapters.export import onnx_bank
from tf_adapters.export import task_runs
from tf_adapters.export.check_texts import CheckTexts
from tf_adapters.models.bank_model import BankModel

pytestmark = pytest.mark.integration

# Two classes, a number, three classes; the methods differ.
RUNS = {
    "sst2": tf_adapters.methods.Houlsby(units=4),
    "stsb": tf_adapters.methods.LoRA(rank=3),
    "sick": tf_adapters.methods.BitFit(),
}

# Prints the answers of run.py, and what it imported.
_PROGRAM = """
import json, runpy, sys
for task, *texts in REQUESTS:
    sys.argv = ["run.py", f"--task={task}", *texts]
    runpy.run_path(FILE, run_name="__main__")
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, made = tmp_path_factory.mktemp("runs"), {}
    for task, method in RUNS.items():
        model, packer, config = make_run(folder / task, task, method)
        resolve.save_config(config, folder / task / "config.yaml")
        made[task] = folder / task, model, packer
    return made


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory):
    folders = [folder for folder, *_ in runs.values()]
    return onnx_bank.export_runs(folders, tmp_path_factory.mktemp("served"))


def test_runs_are_loaded_without_tensorflow_text(runs, monkeypatch):
    monkeypatch.setattr(packer_choice, "has_tensorflow_text", lambda: False)
    folder, _, packer = runs["sst2"]
    _, found, _ = task_runs.load([folder])
    assert isinstance(found, PythonPacker)
    for ours, theirs in zip(
        found.token_arrays(SENTENCES),
        packer.token_arrays(SENTENCES),
        strict=True,
    ):
        assert list(ours) == list(theirs)


def _run(folder, features, ids):
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"))
    names = [value.name for value in session.get_outputs()]
    feed = {name: np.asarray(value) for name, value in features.items()}
    feed["adapter_ids"] = np.asarray(ids, "int32")
    return dict(zip(names, session.run(None, feed), strict=True))


def test_a_mixed_batch_is_each_model_alone(runs, exported):
    packer = next(iter(runs.values()))[2]
    texts = SENTENCES * 3
    features = packer(texts, texts[::-1])
    ids = np.random.default_rng(0).permutation(np.repeat(range(3), 5))
    found = _run(exported, features, ids)
    for index, (_, model, _) in enumerate(runs.values()):
        rows = ids == index
        outputs = ops.convert_to_numpy(model(features, training=False))[rows]
        width = outputs.shape[1]
        assert np.ptp(outputs) > 0.1
        np.testing.assert_allclose(
            found["logits"][rows, :width], outputs, atol=1e-4
        )
        for name, expected in model.head.answer(outputs).items():
            if name.endswith("_id"):
                continue
            answer = found[name][rows]
            if answer.ndim > 1:
                assert not answer[:, width:].any()
                answer = answer[:, :width]
            np.testing.assert_allclose(answer, expected, atol=1e-5)


def test_the_file_has_no_branches(exported):
    """Operations in branches would not be fused."""
    content = onnx.load(exported / "model.onnx")
    assert "If" not in {node.op_type for node in content.graph.node}


def _bottlenecks(content):
    """Shapes of the kernels in float32 that only bottleneck adapters have."""
    return sorted(
        tuple(weight.dims)
        for weight in content.graph.initializer
        if weight.data_type == onnx.TensorProto.FLOAT
        and "_after_" in weight.name
        and len(weight.dims) == 3
    )


@pytest.mark.slow
def test_int8_keeps_the_adapters_in_float32(runs, exported, tmp_path, capsys):
    folders = [folder for folder, *_ in runs.values()]
    folder = onnx_bank.export_runs(folders, tmp_path, "int8")
    assert folder == tmp_path / "onnx_int8" / "tasks"
    content = onnx.load(folder / "model_int8.onnx")
    floats = _bottlenecks(onnx.load(exported / "model.onnx"))
    assert floats
    assert _bottlenecks(content) == floats
    facts = {fact.key: fact.value for fact in content.metadata_props}
    assert set(json.loads(facts["quality"])) == set(RUNS)
    assert "stsb: The int8 file explains" in capsys.readouterr().out
    result = subprocess.run(
        [sys.executable, folder / "run.py", "--task=sst2", "the film is good"],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    _, model, packer = runs["sst2"]
    outputs = model(packer(["the film is good"]), training=False)
    expected = model.head.answer(ops.convert_to_numpy(outputs))
    found = json.loads(result.stdout)["probabilities"]
    np.testing.assert_allclose(
        list(found.values()), expected["probabilities"][0], atol=0.05
    )


def test_a_bank_has_no_static_int8(tmp_path):
    with pytest.raises(ConfigError, match="float32, int8. Received: 'int8_st"):
        onnx_bank.export_runs([], tmp_path, "int8_static")


def test_a_row_of_no_task_spoils_itself_only(runs, exported):
    packer = next(iter(runs.values()))[2]
    found = _run(exported, packer(["a film"] * 3), [0, 3, -1])["logits"]
    assert np.isfinite(found[0]).all()
    assert np.isnan(found[1:]).all()


def test_each_row_needs_an_adapter(runs, exported):
    packer = next(iter(runs.values()))[2]
    # ONNX Runtime's errors have no common class.
    with pytest.raises(Exception, match="Concat"):
        _run(exported, packer(["a film"] * 3), [0])


def test_the_program_answers_without_tensorflow(runs, exported):
    requests = [
        ("sst2", "the film is good"),
        ("stsb", "the film is good", "it was bad"),
        ("sick", "Élan", "naïve"),
    ]
    program = _PROGRAM.replace("FILE", repr(str(exported / "run.py")))
    result = subprocess.run(
        [sys.executable, "-c", program.replace("REQUESTS", repr(requests))],
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    *lines, modules = result.stdout.splitlines()
    assert not {"tensorflow", "keras", "tf_adapters"} & set(json.loads(modules))
    for line, (task, *texts) in zip(lines, requests, strict=True):
        _, model, packer = runs[task]
        features = packer(*([text] for text in texts))
        outputs = ops.convert_to_numpy(model(features, training=False))
        (expected,) = model.head.decode(outputs)
        found = json.loads(line)
        assert found.keys() == expected.keys()
        assert found.get("label") == expected.get("label")
        for name, value in expected.get("probabilities", {}).items():
            assert found["probabilities"][name] == pytest.approx(
                value, abs=1e-5
            )
        if "score" in expected:
            assert found["score"] == pytest.approx(expected["score"], abs=1e-4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task=rte", "a"), "no task `rte`. It has: sst2, stsb, sick"),
        (("--task=stsb", "a"), "reads sentence1, sentence2: give each"),
    ],
)
def test_the_program_refuses_in_a_sentence(exported, arguments, message):
    result = subprocess.run(
        [sys.executable, str(exported / "run.py"), *arguments],
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_file_describes_its_tasks(runs, exported):
    session = onnxruntime.InferenceSession(str(exported / "model.onnx"))
    facts = session.get_modelmeta().custom_metadata_map
    described = json.loads(facts["tasks"])
    assert list(described) == list(RUNS)
    assert [d["adapter_id"] for d in described.values()] == [0, 1, 2]
    for name, (_, model, packer) in runs.items():
        head = heads.from_config(described[name]["head"])
        assert head == model.head
        assert described[name]["text_fields"] == list(
            tasks.get(name).text_fields
        )
        assert facts["max_length"] == str(packer.max_length)
        fingerprint = model.encoder_info.fingerprint
        assert facts["encoder_fingerprint"] == fingerprint


@pytest.mark.slow
def test_a_file_that_differs_is_not_kept(runs, exported, tmp_path, monkeypatch):
    earlier = (exported / "model.onnx").read_bytes()
    call = BankModel.call
    monkeypatch.setattr(BankModel, "call", lambda *a, **k: call(*a, **k) + 0.01)
    with pytest.raises(AdapterError, match="task `sst2`'s `logits` differs"):
        onnx_bank.export_runs([runs["sst2"][0]], exported.parents[1])
    assert (exported / "model.onnx").read_bytes() == earlier
    assert sorted(path.name for path in exported.parent.iterdir()) == ["tasks"]


def test_each_row_takes_the_answer_of_its_head():
    three = ("a", "b", "c")
    of_members = (
        heads.MultiLabel(labels=three),
        heads.Classification(labels=("no", "yes"), temperature=2.0),
        heads.Regression(),
        heads.Classification(labels=three),
    )
    members = [types.SimpleNamespace(head=head) for head in of_members]
    bank = types.SimpleNamespace(members=members)
    outputs = np.random.default_rng(0).normal(size=(8, 3)).astype("float32")
    ids = np.array([3, 1, 0, 2, 2, 0, 1, 3], "int32")
    found = bank_answers.compute(bank, ops.convert_to_tensor(outputs), ids)
    for row, index in enumerate(ids):
        head = of_members[index]
        width = max(1, len(head.labels))
        (expected,) = head.decode(outputs[row : row + 1, :width])
        values = [*expected.get("probabilities", {}).values()]
        values += [0.0] * (3 - len(values))
        np.testing.assert_allclose(
            found["probabilities"][row], values, atol=1e-5
        )
        assert float(found["score"][row]) == pytest.approx(
            expected.get("score", 0), abs=1e-5
        )


@pytest.mark.slow
def test_methods_may_be_mixed(tmp_path):
    mixed = {
        "lora": tf_adapters.methods.LoRA(rank=2),
        "houlsby": tf_adapters.methods.Houlsby(units=4),
        "prefix": tf_adapters.methods.PrefixTuning(prefix_length=3),
        "ia3": tf_adapters.methods.IA3(),
        "adapter_bias": tf_adapters.methods.AdapterBias(),
    }
    of_tasks = [
        dataclasses.replace(tasks.get("sst2"), name=name) for name in mixed
    ]
    models = [
        conftest.make_model("bert", method, task, seed)[0]
        for seed, (method, task) in enumerate(
            zip(mixed.values(), of_tasks, strict=True)
        )
    ]
    for name, model in zip(mixed, models, strict=True):
        tf_adapters.save_adapter(model, tmp_path / name)
    bank = tf_adapters.load_bank(
        [tmp_path / name for name in mixed], head_models.bert()
    )
    packer = conftest.make_packer("bert")
    # It compares the file with each model.
    folder = onnx_bank.export_bank_onnx(
        bank,
        packer,
        of_tasks,
        tmp_path / "tasks",
        [(model, CheckTexts()) for model in models],
    )
    features = packer(SENTENCES)
    found = _run(folder, features, range(5))["logits"]
    for row, model in enumerate(models):
        expected = ops.convert_to_numpy(model(features, training=False))[row]
        np.testing.assert_allclose(found[row], expected, atol=1e-4)
