"""Tests the errors for folders of other libraries that are not supported."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests.interop import folders
from tests.interop.torch_files import write_torch_file
import tf_adapters
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop.heads import HeadForm
from tf_adapters.interop.heads import form_of
from tf_adapters.interop.peft import lora as peft_lora

PFEIFFER = "adapterhub/bert_pfeiffer"
LORA = "peft/bert_lora"


def _set(key, value, file="adapter_config.json"):
    return lambda folder: folders.edit(folder / file, key, value)


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


_DECODER = "heads.task.3.weight"
_UP = "bert.encoder.layer.0.output.adapters.task.adapter_up.weight"
_QUERY = "base_model.model.bert.encoder.layer.0.attention.self.query"


def _cut(tensors):
    tensors[_UP] = np.ascontiguousarray(tensors[_UP][:, :-1])


def _not_a_number(tensors):
    tensors[_UP][0, 0] = np.nan


def _twice(tensors):
    tensors[_UP.removeprefix("bert.")] = tensors[_UP] + 1


def _without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def _of_another_depth(folder):
    # 2 blocks of width 32 have prefixes as long as 4 of width 16.
    for key, value in (("num_layers", 4), ("token_dim", 16)):
        folders.edit(folder / "adapter_config.json", key, value)


# Folder, its change, and the expected message.
CASES = {
    "a head of three layers": (
        "adapterhub/bert_deep_tagging",
        _set("config.layers", 3, "head_config.json"),
        "no head `tagging` of 3 layers",
    ),
    "a head's unknown activation": (
        "adapterhub/bert_deep_span",
        _set("config.activation_function", "swish", "head_config.json"),
        "with activation `swish`",
    ),
    "a prompt where embeddings are narrower": (
        "adapterhub/electra_prefix",
        _set("config", {"architecture": "prompt_tuning", "prompt_length": 3}),
        "narrower",
    ),
    "a decoder of its own": (
        "adapterhub/bert_masked",
        _tensors(
            lambda t: t.update({_DECODER: t[_DECODER] + 1}),
            "model_head.safetensors",
        ),
        "not the token embedding",
    ),
    "another vocabulary": (
        "adapterhub/bert_masked",
        _set("config.vocab_size", 99, "head_config.json"),
        "not the token embedding",
    ),
    "a head for the next token": (
        "adapterhub/bert_masked",
        _set("config.shift_labels", True, "head_config.json"),
        "'shift_labels': True.*with_head=False",
    ),
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
    "shallower": (
        PFEIFFER,
        _tensors(lambda t: [t.pop(n) for n in list(t) if "layer.1." in n]),
        "Missing: bert.encoder.layer.1",
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
    "more classes than memory": (
        PFEIFFER,
        _set("config.num_labels", 2**40, "head_config.json"),
        "must be an integer from 0 to 1,000,000",
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
    "an (IA)^3 of another scale": (
        "adapterhub/bert_ia3",
        _set("config.alpha", 2),
        "alpha: 1",
    ),
    "a tensor by two names": (PFEIFFER, _tensors(_twice), "two tensors"),
    "a head's tensors alone": (
        PFEIFFER,
        _without("head_config.json"),
        "no head_config.json",
    ),
    "a fusion's missing head": (
        "adapterhub/bert_fusion",
        _without("rte/head_config.json", "rte/model_head.safetensors"),
        "names the head `rte`",
    ),
    "another order of the fusion": (
        "adapterhub/bert_fusion",
        lambda folder: folders.edit(
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
    "another model of PEFT": (
        "peft/bert_lora_patterns",
        _set(
            "auto_mapping",
            {
                "base_model_class": "RobertaModel",
                "parent_library": "transformers.models.roberta",
            },
        ),
        "model_type `roberta`",
    ),
    "a prefix of another depth": (
        "peft/bert_prefix",
        _of_another_depth,
        "num_layers: 4",
    ),
    "no target": (LORA, _set("target_modules", ["c_attn"]), "c_attn"),
    "no expression": (
        LORA,
        _set("target_modules", "("),
        "target_modules.*does not run .missing",
    ),
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


def _in_halves(folder, dtype, as_torch):
    """Stores a folder's tensors in half precision."""
    for path in folder.glob("*.safetensors"):
        halves = {k: v.astype(dtype) for k, v in load_file(path).items()}
        if not as_torch:
            save_file(halves, path)
            continue
        path.unlink()
        stem = path.stem
        name = stem if stem == "adapter_model" else f"pytorch_{stem}"
        write_torch_file(folder / f"{name}.bin", halves)


@pytest.mark.parametrize("case", [PFEIFFER, LORA])
@pytest.mark.parametrize("as_torch", [True, False])
@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16])
def test_tensors_of_half_precision_are_read(case, as_torch, dtype, tmp_path):
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    _in_halves(tmp_path / "task", dtype, as_torch)
    (output, wanted), model = _answers(tmp_path / "task", case)
    atol = 0.02 if dtype == "float16" else 0.2
    np.testing.assert_allclose(output, wanted, rtol=0, atol=atol)
    assert all(v.dtype == "float32" for v in model.trained_variables().values())


def test_a_file_of_version_1_is_read_as_it_meant_then(tmp_path):
    folder = tmp_path / "task"
    shutil.copytree(folders.FIXTURES / PFEIFFER, folder)
    config = json.loads((folder / "adapter_config.json").read_text())
    config["config"]["non_linearity"] = "gelu"
    config["config"]["new_attention_norm"] = False
    config["config"]["attention_type"] = "sent-lvl-dynamic"
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


@pytest.mark.parametrize(
    ("case", "names"),
    [
        (
            "adapterhub/bert_houlsby",
            {
                "attention.output.adapters": "attention.output.{}",
                "0.output.adapters": "0.output.{}",
                "1.output.adapters": "1.output.{}",
            },
        ),
        (
            "adapterhub/bert_inv",
            {
                "output.adapters": "output.{}",
                "bert.invertible_adapters": "bert.invertible_lang_adapters",
            },
        ),
    ],
)
@pytest.mark.parametrize("kind", ["text_task", "text_lang"])
def test_a_folder_with_the_modules_old_names_answers_alike(
    case, names, kind, tmp_path
):
    folder = tmp_path / "task"
    shutil.copytree(folders.FIXTURES / case, folder)
    for new, old in names.items():
        start = "attention" if new.startswith("attention") else "layer"
        old = old.format(f"{start}_{kind}_adapters")
        _tensors(_rename(new, old))(folder)
    stored = load_file(folder / "adapter.safetensors")
    assert not any(".adapters." in name for name in stored)
    (output, wanted), _ = _answers(folder, case)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("version", "alpha"),
    [
        ("adapters.1.0.1", 2),
        ("adapters.0.1.0", 2),
        ("adapters.1.1.0", 6),
        # Of adapter-transformers, which came before.
        ("3.2.1", 6),
        (None, 6),
    ],
)
def test_a_lora_had_a_scale_of_one_for_some_versions(version, alpha, tmp_path):
    case = "adapterhub/bert_lora"
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    config = tmp_path / "task" / "adapter_config.json"
    folders.edit(config, "version", version)
    _, model = _answers(tmp_path / "task", case)
    assert (model.method.rank, model.method.alpha) == (2, alpha)


def test_an_adapter_without_its_head_gives_the_encoders_outputs():
    _, model = _answers_without_head(PFEIFFER)
    assert model.head is None


def _answers_without_head(case):
    encoder = folders.encoder(case)
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, encoder, with_head=False
    )
    return None, model


def _load_alone(folder, encoder, message):
    """Loads an adapter that is refused with its head, and returns the model."""
    with pytest.raises(AdapterError, match=message):
        tf_adapters.load_adapter(folder, encoder)
    model = tf_adapters.load_adapter(folder, encoder, with_head=False)
    assert model.head is None
    return model


@pytest.mark.parametrize(
    ("case", "file"),
    [
        (PFEIFFER, "head_config.json"),
        ("adapterhub/bert_fusion", "rte/head_config.json"),
    ],
)
def test_a_head_of_an_unknown_kind_is_left_out_on_request(case, file, tmp_path):
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    unknown = "dependency_parsing"
    folders.edit(tmp_path / "task" / file, "config.head_type", unknown)
    encoder = folders.encoder(case)
    model = _load_alone(tmp_path / "task", encoder, "with_head=False")
    assert not any("head/" in name for name in model.trained_variables())


def test_an_adapter_of_peft_with_a_head_of_no_task_is_read_alone(tmp_path):
    shutil.copytree(folders.FIXTURES / LORA, tmp_path / "task")
    path = tmp_path / "task" / "adapter_config.json"
    folders.edit(path, "task_type", None)
    encoder = folders.encoder(LORA)
    message = "is None. Load .* with_head=False"
    _load_alone(tmp_path / "task", encoder, message)
    # A module of the encoder is not left out.
    folders.edit(path, "modules_to_save", ["classifier", "pooler"])
    path = tmp_path / "task" / "adapter_model.safetensors"
    pooler = {"base_model.model.bert.pooler.dense.bias": np.ones(1)}
    save_file({**load_file(path), **pooler}, path)
    with pytest.raises(AdapterError, match=r"pooler\.dense\.bias"):
        tf_adapters.load_adapter(tmp_path / "task", encoder, with_head=False)


@pytest.mark.parametrize("name", ["fusion", "stack"])
def test_a_members_head_matters_only_where_it_is_used(name, tmp_path):
    # Adapters can have kinds of heads that we do not support.
    shutil.copytree(folders.FIXTURES / PFEIFFER, tmp_path / "language")
    path = tmp_path / "language" / "head_config.json"
    folders.edit(path, "config.head_type", "dependency_parsing")
    encoder = folders.encoder(PFEIFFER)
    if name == "fusion":
        two = ["language", "other"]
        shutil.copytree(tmp_path / "language", tmp_path / "other")
        model = tf_adapters.fuse(encoder, adapters=[tmp_path / n for n in two])
    else:
        stack = tf_adapters.Stack(
            tmp_path / "language", tf_adapters.methods.Pfeiffer()
        )
        model = tf_adapters.compose(encoder, stack)
    tf_adapters.save_adapter(model, tmp_path / "saved")
    again = tf_adapters.load_adapter(tmp_path / "saved", encoder)
    assert len(again.members) == len(model.members) > 0


def test_a_pattern_of_peft_may_be_a_full_name(tmp_path):
    arrays = []
    for number, start in enumerate(("", "bert.encoder.")):
        folder = tmp_path / f"{number}"
        shutil.copytree(folders.FIXTURES / LORA, folder)
        pattern = {f"{start}layer.0.attention.self.query": 32}
        folders.edit(folder / "adapter_config.json", "alpha_pattern", pattern)
        model = tf_adapters.load_adapter(folder, folders.encoder(LORA))
        up = model.slot_weights(0, "query")["up_kernel"].numpy()
        arrays.append(model.method.alpha * up)
    np.testing.assert_array_equal(*arrays)
    assert np.abs(arrays[0]).max() > 0


def test_what_a_file_of_peft_does_not_say_is_its_default():
    scales = peft_lora._scales({}, "x", {0: ("bert.pooler",)})
    assert scales == {0: (8, 8)}


def test_a_head_of_one_label_may_be_multilabel():
    assert HeadForm("text").to_config(["a"], True)["name"] == "multilabel"
    assert HeadForm("text").to_config(["a"])["name"] == "regression"


def test_names_that_begin_alike_are_reported_apart():
    # The fusion's members are called `rte` and `rte2`.
    case = "adapterhub/bert_fusion"
    _, model = _answers(folders.FIXTURES / case, case)
    assert [member.name for member in model.members] == ["rte", "rte2"]
    names = set(model.members[0].tensors) & set(model.members[1].tensors)
    assert all(
        (model.members[0].tensors[n] != model.members[1].tensors[n]).any()
        for n in names
    )


def test_the_library_writes_neighbors_into_one_file(tmp_path):
    # What the names begin with is the same, and there is no end to look for.
    case = "adapterhub/bert_fusion"
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    for file, name, neighbor in (
        ("rte/model_head.safetensors", "heads.rte.", "heads.rte2."),
        (
            "rte,rte2/model_adapter_fusion.safetensors",
            "layer.rte,rte2.",
            "layer.rte,rte2,sst.",
        ),
    ):
        tensors = load_file(tmp_path / "task" / file)
        others = {
            key.replace(name, neighbor): value + 1
            for key, value in tensors.items()
        }
        assert not set(others) & set(tensors)
        save_file({**others, **tensors}, tmp_path / "task" / file)
    (output, wanted), _ = _answers(tmp_path / "task", case)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


def test_a_static_fusion_has_no_values(tmp_path):
    case = "adapterhub/bert_fusion"
    shutil.copytree(folders.FIXTURES / case, tmp_path / "task")
    of_fusion = tmp_path / "task" / "rte,rte2"
    for key in ("value", "regularization", "value_initialized"):
        path = of_fusion / "adapter_fusion_config.json"
        folders.edit(path, f"config.{key}", False)
    drop = _tensors(
        lambda t: [t.pop(n) for n in list(t) if ".value." in n],
        "model_adapter_fusion.safetensors",
    )
    drop(of_fusion)
    _, model = _answers(tmp_path / "task", case)
    assert (model.method.value, model.method.value_pull) == ("static", 0)
    assert not any("value" in name for name in model.trained_variables())


def test_a_threshold_has_no_place_in_another_format():
    config = {"name": "multilabel", "labels": ["a", "b"], "threshold": 0.2}
    with pytest.raises(AdapterError, match=r"threshold, 0\.2"):
        form_of(config)
    assert form_of({**config, "threshold": 0.5}).kind == "text"
