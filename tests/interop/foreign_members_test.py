"""Tests other libraries' adapters in banks, fusions and training."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file
import tensorflow as tf

from tests import commands
from tests import tiny
from tests.interop import folders
import tf_adapters
from tf_adapters import heads
from tf_adapters import tasks
from tf_adapters.encoders.load import load_encoder
from tf_adapters.export import many_tasks
from tf_adapters.layers.banks.heads import ABSENT

pytestmark = pytest.mark.integration

HOULSBY, PFEIFFER = "adapterhub/bert_houlsby", "adapterhub/bert_pfeiffer"
LORA = "peft/bert_lora"


def _changed(case, folder):
    """Returns a copy of a folder with other weights."""
    shutil.copytree(folders.FIXTURES / case, folder)
    for path in folder.glob("*.safetensors"):
        save_file({k: -v for k, v in load_file(path).items()}, path)
    return folder


@pytest.fixture
def members(tmp_path):
    """Makes two adapters of AdapterHub and one of ours that fit together."""
    foreign = folders.FIXTURES / HOULSBY
    encoder = folders.encoder(HOULSBY)
    method = tf_adapters.load_adapter(foreign, encoder).method
    head = heads.Regression(reads="pooled_output")
    ours = tf_adapters.adapt(encoder, method, head)
    tiny.randomize(ours.trained_variables().values(), 0.3, 5)
    tf_adapters.save_adapter(ours, tmp_path / "ours")
    return [foreign, _changed(HOULSBY, tmp_path / "other"), tmp_path / "ours"]


def _inputs(case):
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    inputs = {
        name.removeprefix("input/"): value
        for name, value in expected.items()
        if name.startswith("input/")
    }
    return inputs, expected["output"]


def test_a_bank_answers_as_each_of_its_members_and_as_the_library(members):
    encoder = folders.encoder(HOULSBY)
    bank = tf_adapters.load_bank(members, encoder)
    inputs, of_library = _inputs(HOULSBY)
    rows = len(of_library)
    for number, member in enumerate(members):
        alone = np.asarray(tf_adapters.load_adapter(member, encoder)(inputs))
        ids = np.full(rows, number)
        found = np.asarray(bank({**inputs, "adapter_ids": ids}))
        outputs = alone.shape[1]
        np.testing.assert_allclose(found[:, :outputs], alone, atol=1e-5)
        assert (found[:, outputs:] == ABSENT).all()
        if number == 0:
            np.testing.assert_allclose(found, of_library, atol=1e-5)
        else:
            assert np.abs(found[:, :1] - of_library[:, :1]).max() > 0.1
    mixed = {**inputs, "adapter_ids": np.arange(rows) % 2}
    np.testing.assert_allclose(
        np.asarray(bank(mixed))[::2], of_library[::2], atol=1e-5
    )


def test_a_bank_of_foreign_folders_is_exported(members, tmp_path):
    encoder, tokenizer = load_encoder(commands.ENCODER_OF_TWO_BLOCKS)
    bank = tf_adapters.load_bank(members[:2], encoder)
    packer = tf_adapters.TextPacker(tokenizer, 16)
    fields = {"text_fields": ("text",), "labels": ("no", "yes", "perhaps")}
    of_task = [tasks.Task(name=name, **fields) for name in ("one", "two")]
    path = many_tasks.export_bank(bank, packer, of_task, tmp_path / "tasks")
    texts = ["the film is good", "a very dull plot"] * 2
    served = tf.saved_model.load(str(path)).signatures["serving_default"](
        text=tf.constant(texts),
        text_pair=tf.constant([""] * 4),
        task=tf.constant(["one", "one", "two", "two"]),
    )
    for number, member in enumerate(members[:2]):
        model = tf_adapters.load_adapter(member, encoder)
        inputs = packer(texts[:2])
        wanted = tf.nn.softmax(model(inputs)).numpy()
        found = served["probabilities"][2 * number : 2 * number + 2]
        np.testing.assert_allclose(found, wanted, atol=1e-5)


def test_a_bank_of_both_libraries_answers_as_each_of_them():
    cases = [HOULSBY, LORA, "peft/bert_ia3"]
    paths = [folders.FIXTURES / case for case in cases]
    bank = tf_adapters.load_bank(paths, folders.encoder(HOULSBY))
    for number, case in enumerate(cases):
        inputs, of_library = _inputs(case)
        others = (np.arange(len(of_library)) + number) % len(cases)
        found = np.asarray(bank({**inputs, "adapter_ids": others}))
        rows = others == number
        width = of_library.shape[1]
        np.testing.assert_allclose(
            found[rows, :width], of_library[rows], atol=1e-5
        )


def _settings(method, **more):
    return {
        "task": "demo_sentiment",
        "encoder": commands.ENCODER_OF_TWO_BLOCKS,
        "method": method,
        "data": {"max_train_examples": 32, "max_length": 16},
        "train": {"epochs": 1, "batch_size": 16, "learning_rate": 1e-2},
        **more,
    }


def _frozen(model):
    return {
        member.name: member.tensors["block_0_after_ffn/delta/down_kernel"]
        for member in model.members
    }


def test_a_fusion_trains_over_foreign_members(tmp_path, capsys):
    other = _changed(PFEIFFER, tmp_path / "other")
    adapters = [str(folders.FIXTURES / PFEIFFER), str(other)]
    method = {"name": "fusion", "adapters": adapters}
    run = tmp_path / "run"
    assert commands.run(run, _settings(method)) == 0
    encoder = folders.encoder(PFEIFFER)
    model = tf_adapters.load_adapter(run, encoder)
    assert list(_frozen(model)) == ["bert_pfeiffer", "other"]
    for name, array in _frozen(model).items():
        sign = -1 if name == "other" else 1
        there = load_file(f"{folders.FIXTURES / PFEIFFER}/adapter.safetensors")
        key = "bert.encoder.layer.0.output.adapters.task.adapter_down.0.weight"
        np.testing.assert_array_equal(array, sign * there[key].T)
    # What it stores of the validation is what it answers when it is read.
    result = json.loads((run / "result.json").read_text())
    assert commands.run(run, mode="eval") == 0
    again = json.loads((run / "result.json").read_text())
    assert again["validation"] == result["validation"]
    # It is exported with both members, equal to the import.
    assert commands.run(run, mode="export", format="adapterhub") == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert "use_safetensors=True" in last
    (setup,) = run.rglob("adapter_setup.json")
    exported = tf_adapters.load_adapter(setup.parent, encoder)
    inputs, _ = _inputs(PFEIFFER)
    np.testing.assert_allclose(
        exported(inputs), model(inputs), rtol=0, atol=1e-5
    )


def test_training_starts_from_a_foreign_adapter(tmp_path):
    method = {"name": "lora", "rank": 2, "alpha": 6.0}
    start = str(folders.FIXTURES / LORA)
    settings = _settings(method, init_adapter=start)
    settings["train"]["learning_rate"] = 1e-6
    assert commands.run(tmp_path / "run", settings) == 0
    encoder = folders.encoder(LORA)
    first = tf_adapters.load_adapter(start, encoder).trained_variables()
    last = tf_adapters.load_adapter(tmp_path / "run", encoder)
    for name, variable in last.trained_variables().items():
        if "head/" not in name:
            np.testing.assert_allclose(variable, first[name], atol=1e-4)
            assert np.abs(variable).max() > 0.1


@pytest.mark.parametrize(
    ("flag", "sentence"),
    [
        ("adapters", "only bottleneck adapters"),
        ("init_adapter", "has the method"),
    ],
)
def test_a_foreign_adapter_that_does_not_fit_is_reported(
    flag, sentence, tmp_path, capsys
):
    start = str(folders.FIXTURES / LORA)
    settings = _settings({"name": "fusion", "adapters": [start]})
    if flag == "init_adapter":
        settings = _settings("pfeiffer", init_adapter=start)
    assert commands.run(tmp_path / "run", settings) == 1
    assert sentence in capsys.readouterr().err
