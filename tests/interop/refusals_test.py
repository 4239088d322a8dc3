"""Folders of other libraries that are refused, in one sentence each."""

import json
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests.interop import folders
from tests.interop.torch_files import write_torch_file
import tf_adapters
from tf_adapters.common.errors import AdapterError

PFEIFFER = "adapterhub/bert_pfeiffer"
LORA = "peft/bert_lora"


def _edit(path, key, value):
    config = json.loads(path.read_text())
    inner = config
    *keys, last = key.split(".")
    for one in keys:
        inner = inner[one]
    inner[last] = value
    path.write_text(json.dumps(config))


def _set(key, value, file="adapter_config.json"):
    return lambda folder: _edit(folder / file, key, value)


def _tensors(change, file="adapter.safetensors"):
    def edit(folder):
        tensors = load_file(folder / file)
        change(tensors)
        save_file(tensors, folder / file)

    return edit


def _rename(old, new):
    def change(tensors):
        for name in [name for name in tensors if old in name]:
            tensors[name.replace(old, new)] = tensors.pop(name)

    return change


def _add(name):
    def change(tensors):
        tensors[name] = np.zeros(3, "float32")

    return change


_UP = "bert.encoder.layer.0.output.adapters.task.adapter_up.weight"
_QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"


def _cut(tensors):
    tensors[_UP] = np.ascontiguousarray(tensors[_UP][:, :-1])


def _not_a_number(tensors):
    tensors[_UP][0, 0] = np.nan


# Folder, what is done to it, and what the sentence says.
CASES = {
    "another width": (PFEIFFER, _set("hidden_size", 768), "width 768"),
    "another model": (
        PFEIFFER,
        _set("model_type", "roberta"),
        "model_type `roberta`",
    ),
    "deeper": (
        PFEIFFER,
        _tensors(_rename("layer.1.", "layer.2.")),
        "3 blocks or more",
    ),
    "a missing tensor": (PFEIFFER, _tensors(lambda t: t.pop(_UP)), _UP),
    "a tensor of another adapter": (
        PFEIFFER,
        _tensors(_add(_UP.replace("task", "task2"))),
        "Unexpected: .*task2",
    ),
    "a misshaped tensor": (PFEIFFER, _tensors(_cut), "shape"),
    "a tensor not finite": (PFEIFFER, _tensors(_not_a_number), "not finite"),
    "an unknown activation": (
        PFEIFFER,
        _set("config.non_linearity", "mish"),
        "no activation `mish`",
    ),
    "an unknown option": (
        PFEIFFER,
        _set("config.new_trick", 0.5),
        "new_trick: 0.5",
    ),
    "another coupling": (
        PFEIFFER,
        _set("config.inv_adapter", "glow"),
        "inv_adapter: 'glow'",
    ),
    "another architecture": (
        PFEIFFER,
        _set("config.architecture", "reft"),
        "no method `reft`",
    ),
    "several widths": (
        PFEIFFER,
        _set("config.reduction_factor", {"0": 4, "default": 8}),
        "several widths",
    ),
    "a missing head": (
        PFEIFFER,
        lambda folder: (folder / "model_head.safetensors").unlink(),
        "missing",
    ),
    "another head": (
        PFEIFFER,
        _set("config.head_type", "dependency_parsing", "head_config.json"),
        "with_head=False",
    ),
    "labels with a gap": (
        PFEIFFER,
        _set("config.label2id", {"a": 0, "b": 1, "c": 3}, "head_config.json"),
        "3 classes",
    ),
    "no weights": (
        PFEIFFER,
        lambda folder: (folder / "adapter.safetensors").unlink(),
        "pytorch_adapter.bin is missing",
    ),
    "DoRA": (
        "adapterhub/bert_lora",
        _set("config.use_dora", True),
        "use_dora",
    ),
    "a scaled LoRA": (
        "adapterhub/bert_ia3",
        _set("config.attn_matrices", ["q"]),
        r"\(IA\)\^3 only",
    ),
    "copies that differ": (
        "adapterhub/bert_norms",
        _tensors(
            lambda t: t.update(
                {
                    n: t[n] + 1
                    for n in list(t)
                    if n.endswith("adapter_down.0.bias")
                }
            )
        ),
        "copies .* differ",
    ),
    "another order of the fusion": (
        "adapterhub/bert_fusion",
        lambda folder: _edit(
            folder / "rte,rte2" / "adapter_fusion_config.json",
            "adapter_names",
            ["rte2", "rte"],
        ),
        "is a fusion of",
    ),
    "a stack": (
        "adapterhub/bert_fusion",
        _set("adapter_setup.type", "Stack", "adapter_setup.json"),
        "composition `Stack`",
    ),
    "another kind of PEFT": (LORA, _set("peft_type", "LOHA"), "a `LOHA`"),
    "DoRA of PEFT": (LORA, _set("use_dora", True), "use_dora: True"),
    "trained biases": (LORA, _set("bias", "all"), "bias: 'all'"),
    "a start that changes the encoder": (
        LORA,
        _set("init_lora_weights", "pissa"),
        "pissa",
    ),
    "no target": (LORA, _set("target_modules", ["c_attn"]), "c_attn"),
    "another target": (LORA, _set("target_modules", ["key"]), "Missing"),
    "another rank": (LORA, _set("r", 4), "shape"),
    "an unknown option of PEFT": (LORA, _set("new_trick", 1), "new_trick"),
    "no head": (
        LORA,
        _tensors(
            lambda t: [t.pop(n) for n in list(t) if "classifier" in n],
            "adapter_model.safetensors",
        ),
        "Missing: classifier",
    ),
    "a matrix too many": (
        LORA,
        _tensors(_add(f"{_QUERY}.lora_C"), "adapter_model.safetensors"),
        "Unexpected: .*lora_C",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_folder_that_does_not_fit_is_refused(case, tmp_path):
    source, damage, sentence = CASES[case]
    shutil.copytree(folders.FIXTURES / source, tmp_path / "task")
    damage(tmp_path / "task")
    with pytest.raises(AdapterError, match=f"(?s){sentence}"):
        tf_adapters.load_adapter(tmp_path / "task", folders.encoder(source))


def _answers(folder, case, **options):
    model = tf_adapters.load_adapter(folder, folders.encoder(case), **options)
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    return folders.answer(model, expected), model


def _as_torch(folder):
    """Stores a folder's tensors as PyTorch's files, in half precision."""
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        path.unlink()
        halves = {k: v.astype("float16") for k, v in tensors.items()}
        stem = path.stem
        name = stem if stem == "adapter_model" else f"pytorch_{stem}"
        write_torch_file(folder / f"{name}.bin", halves)


@pytest.mark.parametrize("case", [PFEIFFER, LORA])
def test_pickled_tensors_of_half_precision_are_read(case, tmp_path):
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    _as_torch(tmp_path / "task")
    (output, wanted), model = _answers(tmp_path / "task", case)
    np.testing.assert_allclose(output, wanted, rtol=0, atol=0.02)
    assert all(v.dtype == "float32" for v in model.trained_variables().values())


def test_a_file_of_version_1_is_read_as_it_meant_then(tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(folders.FIXTURES / PFEIFFER, folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["config"]["non_linearity"] = "gelu"
    config["config"]["new_attention_norm"] = False
    config["type"] = "text_task"
    config["config"]["invertible_adapter"] = {
        "block_type": "nice",
        "reduction_factor": 2,
    }
    del config["version"]
    (folder / "adapter_config.json").write_text(json.dumps(config))
    old = _rename("output.adapters", "output.layer_text_task_adapters")
    _tensors(old)(folder)
    _, model = _answers(folder, PFEIFFER)
    assert model.method == tf_adapters.methods.Pfeiffer(
        units=8, activation="gelu_tanh"
    )


def test_a_lora_before_1_1_had_a_scale_of_one(tmp_path):
    case = "adapterhub/bert_lora"
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    config = tmp_path / "task" / "adapter_config.json"
    _edit(config, "version", "adapters.1.0.1")
    _, model = _answers(tmp_path / "task", case)
    assert (model.method.rank, model.method.alpha) == (2, 2.0)


def test_an_adapter_without_its_head_gives_the_encoders_outputs():
    _, model = _answers_without_head(PFEIFFER)
    assert model.head is None


def _answers_without_head(case):
    encoder = folders.encoder(case)
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, encoder, with_head=False
    )
    return None, model


def test_names_that_begin_alike_are_told_apart():
    # The fusion's members are called `rte` and `rte2`.
    case = "adapterhub/bert_fusion"
    _, model = _answers(folders.FIXTURES / case, case)
    assert [member.name for member in model.members] == ["rte", "rte2"]
    names = set(model.members[0].tensors) & set(model.members[1].tensors)
    assert all(
        (model.members[0].tensors[n] != model.members[1].tensors[n]).any()
        for n in names
    )
