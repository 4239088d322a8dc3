"""Tests that our exports equal the other libraries' files, bit for bit."""

import json
import re
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file
from safetensors.numpy import save_file

from tests import tiny
from tests.interop import folders
import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import AdapterError
from tf_adapters.common.errors import UserError
from tf_adapters.encoders import quantization

# Folders whose form ours is not: a head of a plain class, which goes back as
# the library's own; a LoRA of several ranks; a key that PEFT repeats.
_OTHERS = ("static", "patterns", "pooler", "one_block")
WRITTEN = [c for c in folders.CASES if not c.endswith(_OTHERS)]
# Keys on the origin of a file, its model, and the start of training.
_IGNORED = {"model_name", "version", "base_model_name_or_path", "peft_version"}
_IGNORED |= {"dropout_prob", "init_weights", "auto_mapping", "task_type"}
_IGNORED |= {"inv_adapter_reduction_factor", "bottleneck_size"}

FUSION_FILE = "rte,rte2/model_adapter_fusion.safetensors"


def _config(path):
    """Returns the values in a JSON file, without empty or ignored ones."""

    def cleaned(value):
        if isinstance(value, list):
            return sorted((cleaned(v) for v in value), key=str)
        if not isinstance(value, dict):
            return value
        return {
            k: cleaned(v)
            for k, v in value.items()
            if k not in _IGNORED and v not in (None, {}, False)
        }

    return cleaned(json.loads(path.read_text()))


def _tensors(path):
    """Returns tensors by names without PEFT's choice of the model's class."""
    start = "base_model.model."
    inner = rf"^{start}(bert|roberta|distilbert|mpnet|deberta|model)\."
    return {
        re.sub(inner, start, name): value
        for name, value in load_file(path).items()
    }


@pytest.mark.parametrize("case", WRITTEN)
def test_a_folder_that_was_read_is_written_as_it_was(case, tmp_path):
    library, _, name = case.partition("/")
    source = folders.FIXTURES / case
    model = tf_adapters.load_adapter(source, folders.encoder(case))
    written = tmp_path / "task"
    tf_adapters.save_adapter(model, written, format=library)
    files = [p for p in source.rglob("*") if p.is_file()]
    for path in files:
        ours = written / path.relative_to(source)
        if path.suffix == ".json":
            there = _config(path)
            # Fields of kinds that our adapters never have.
            for key in ("megatron_core", "qalora_group_size"):
                there.pop(key, None)
            assert _config(ours) == there, path.name
        else:
            there, here = _tensors(path), _tensors(ours)
            assert sorted(here) == sorted(there)
            for key, value in there.items():
                if not key.endswith("key.bias"):
                    np.testing.assert_array_equal(here[key], value, key)
    assert len(files) + 1 == sum(p.is_file() for p in written.rglob("*"))
    again = tf_adapters.load_adapter(written, folders.encoder(case))
    there, here = (
        {k: v.numpy() for k, v in one.trained_variables().items()}
        for one in (model, again)
    )
    assert here.keys() == there.keys()
    for key, value in there.items():
        np.testing.assert_array_equal(here[key], value, key)
    assert again.method == model.method


@pytest.mark.parametrize(
    "case", [c for c in folders.CASES if c.endswith(_OTHERS)]
)
def test_other_forms_answer_alike_after_a_way_out_and_in(case, tmp_path):
    library = case.partition("/")[0]
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, folders.encoder(case)
    )
    tf_adapters.save_adapter(model, tmp_path / "task", format=library)
    again = tf_adapters.load_adapter(tmp_path / "task", folders.encoder(case))
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    output, wanted = folders.answer(again, expected)
    np.testing.assert_allclose(output, wanted, rtol=1e-5, atol=1e-5)


def test_a_fusion_of_distilbert_lies_next_to_its_adapters(tmp_path):
    case = "adapterhub/distilbert_pfeiffer"
    for name in ("a", "b"):
        shutil.copytree(folders.FIXTURES / case, tmp_path / name)
    members = [tmp_path / "a", tmp_path / "b"]
    model = tf_adapters.fuse(folders.encoder(case), adapters=members)
    tf_adapters.save_adapter(model, tmp_path / "task", format="adapterhub")
    file = "model_adapter_fusion.safetensors"
    names = load_file(tmp_path / "task" / "a,b" / file)
    start = "distilbert.transformer.layer.0.output_adapters"
    assert f"{start}.adapter_fusion_layer.a,b.query.weight" in names


@pytest.mark.parametrize("blocks", [[0], [0, 1]], ids=str)
def test_members_are_left_out_of_their_fusions_blocks(blocks, tmp_path):
    case = "adapterhub/bert_fusion"
    encoder = folders.encoder(case)
    model = tf_adapters.load_adapter(folders.FIXTURES / case, encoder)
    model.leave_out(blocks)
    tf_adapters.save_adapter(model, tmp_path / "task", format="adapterhub")
    # The library makes, and does not use, the attention of these blocks.
    theirs = load_file(folders.FIXTURES / case / FUSION_FILE)
    own = tmp_path / "task" / FUSION_FILE
    save_file({**theirs, **load_file(own)}, own)
    again = tf_adapters.load_adapter(tmp_path / "task", folders.encoder(case))
    assert again.method.leave_out == tuple(blocks)
    given = load_file(f"{folders.FIXTURES / case}.safetensors")
    np.testing.assert_array_equal(
        *(folders.answer(m, given)[0] for m in (model, again))
    )


@pytest.mark.parametrize(
    ("name", "with_head", "alpha"),
    [("bert_lora", False, 6), ("roberta_lora", True, 8)],
)
def test_a_lora_moves_through_all_formats_bit_for_bit(
    name, with_head, alpha, tmp_path
):
    case = f"adapterhub/{name}"
    model = tf_adapters.load_adapter(
        folders.FIXTURES / case, folders.encoder(case), with_head=with_head
    )
    expected = load_file(f"{folders.FIXTURES / case}.safetensors")
    first = {k: v.numpy() for k, v in model.trained_variables().items()}
    answered = folders.output_of(model, folders.inputs(model, expected))
    for number, form in enumerate(("tf_adapters", "peft", "adapterhub")):
        folder = tmp_path / f"{number}"
        tf_adapters.save_adapter(model, folder, format=form)
        model = tf_adapters.load_adapter(folder, folders.encoder(case))
        last = {k: v.numpy() for k, v in model.trained_variables().items()}
        assert sorted(first) == sorted(last)
        for key, value in first.items():
            np.testing.assert_array_equal(last[key], value, key)
        output = folders.output_of(model, folders.inputs(model, expected))
        np.testing.assert_array_equal(output, answered)
    assert model.method.alpha == alpha
    assert any("head/" in key for key in first) == with_head


@pytest.mark.parametrize(
    ("method", "start"),
    [
        (methods.LoRA(), "base_model.model."),
        # PEFT wraps no model of its own around that of a prompt.
        (methods.PromptTuning(form="peft"), "base_model."),
    ],
)
def test_a_pooler_that_trains_is_where_peft_looks_for_it(
    method, start, tmp_path
):
    head = heads.Classification(CLASSES, hidden_layer="tanh")
    model = tf_adapters.adapt(folders.encoder("x/bert"), method, head)
    tf_adapters.save_adapter(model, tmp_path / "task", format="peft")
    names = set(load_file(tmp_path / "task" / "adapter_model.safetensors"))
    modules = ("classifier", "bert.pooler.dense")
    of_head = {f"{start}{m}.{p}" for m in modules for p in ("weight", "bias")}
    assert {
        n for n in names if "lora" not in n and "prompt" not in n
    } == of_head


CLASSES = ("no", "yes")
REFUSALS = {
    "trained norms": (
        methods.Houlsby(units=2),
        None,
        "adapterhub",
        "method.train_layer_norms=false",
    ),
    "a bottleneck in PEFT": (
        methods.Pfeiffer(units=2),
        None,
        "peft",
        "format=adapterhub",
    ),
    "two LoRAs": (
        methods.Union(
            (
                methods.LoRA(projections=("query",)),
                methods.LoRA(projections=("value",)),
            )
        ),
        None,
        "adapterhub",
        "two parts of one kind",
    ),
    "AdapterBias": (methods.AdapterBias(), None, "adapterhub", "adapter_bias"),
    "attention's output": (
        methods.LoRA(projections=("output",)),
        None,
        "adapterhub",
        "format=peft",
    ),
    "another (IA)^3": (methods.IA3(), None, "peft", "method.form=peft"),
    "another prompt": (
        methods.PromptTuning(form="peft"),
        None,
        "adapterhub",
        "method.form=adapterhub",
    ),
    "another head": (
        methods.LoRA(),
        heads.Classification(CLASSES),
        "peft",
        "head.reads=pooled_output",
    ),
    "masked tokens in PEFT": (
        methods.LoRA(),
        heads.MaskedLM(100, 32),
        "peft",
        "with_head=false",
    ),
    "a norm of its own": (
        methods.LoRA(),
        heads.MaskedLM(100, 32, layer_norm_epsilon=1e-2),
        "adapterhub",
        "layer_norm_epsilon=1e-12",
    ),
    "several labels": (
        methods.LoRA(),
        heads.MultiLabel(CLASSES, reads="pooled_output"),
        "peft",
        "several labels: use --format=adapterhub",
    ),
    "an unknown format": (methods.LoRA(), None, "onnx", "adapterhub, peft"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_what_a_format_cannot_hold_is_refused_and_leaves_nothing(
    case, tmp_path
):
    method, head, form, advice = REFUSALS[case]
    model = tf_adapters.adapt(folders.encoder("x/bert"), method, head)
    with pytest.raises(AdapterError, match="(?s)" + advice.replace("(", r"\(")):
        tf_adapters.save_adapter(model, tmp_path / "task", format=form)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("kind", "method", "form", "sentence"),
    [
        ("roberta", methods.PrefixTuning(form="peft"), "peft", "no pooler"),
        ("electra", methods.PrefixTuning(form="peft"), "peft", "no pooler"),
        ("electra", methods.PromptTuning(), "adapterhub", "narrower"),
        ("electra", methods.Invertible(), "adapterhub", "narrower"),
        ("distilbert", methods.PrefixTuning(form="peft"), "peft", "not run on"),
    ],
)
def test_what_does_not_run_there_on_an_encoder_is_refused(
    kind, method, form, sentence, tmp_path
):
    activations = {"roberta": "tanh", "electra": "gelu", "distilbert": "relu"}
    head = heads.Classification(CLASSES, hidden_layer=activations[kind])
    if isinstance(method, methods.Invertible):
        method = methods.Union((method, methods.Pfeiffer(units=2)))
    model = tf_adapters.adapt(folders.encoder(f"x/{kind}"), method, head)
    with pytest.raises(UserError, match=sentence):
        tf_adapters.save_adapter(model, tmp_path / "task", format=form)
    assert not list(tmp_path.iterdir())


def test_a_prompt_of_peft_is_as_wide_as_the_embeddings(tmp_path):
    encoder = folders.encoder("x/electra")
    method = methods.PromptTuning(prompt_length=2, form="peft")
    model = tf_adapters.adapt(encoder, method)
    tf_adapters.save_adapter(model, tmp_path / "task", format="peft")
    path = tmp_path / "task" / "adapter_config.json"
    assert json.loads(path.read_text())["token_dim"] == 16
    again = tf_adapters.load_adapter(tmp_path / "task", encoder)
    np.testing.assert_array_equal(
        *(next(iter(m.trained_variables().values())) for m in (model, again))
    )


@pytest.mark.parametrize(
    ("head", "advice"),
    [
        (
            heads.Tagging(CLASSES, hidden_layer="tanh"),
            "head.hidden_layer=none,",
        ),
        (heads.Span(hidden_layer="tanh"), "head.hidden_layer=none,"),
        (heads.Choice(hidden_layer="tanh"), "no multiple-choice"),
    ],
)
def test_a_head_of_two_layers_is_reported_what_peft_has(head, advice, tmp_path):
    model = tf_adapters.adapt(folders.encoder("x/bert"), methods.LoRA(), head)
    with pytest.raises(AdapterError) as caught:
        tf_adapters.save_adapter(model, tmp_path / "task", format="peft")
    assert advice in str(caught.value)
    tf_adapters.save_adapter(model, tmp_path / "hub", format="adapterhub")
    again = tf_adapters.load_adapter(
        tmp_path / "hub", folders.encoder("x/bert")
    )
    assert again.head.hidden_layer == "tanh"


def test_every_width_survives_the_librarys_division():
    # `int(width // factor)` of a factor in floating point loses a unit.
    from tf_adapters.interop.adapterhub.configurations import write_method

    for width in (312, 384, 768):
        for units in range(1, width):
            config = write_method(methods.Pfeiffer(units=units), width)
            assert int(width // config["reduction_factor"]) == units


@pytest.mark.parametrize("name", ["a,b", "a.b"])
def test_a_name_that_means_something_else_there_is_refused(name, tmp_path):
    model = tf_adapters.adapt(folders.encoder("x/bert"), methods.LoRA())
    with pytest.raises(AdapterError, match="another name"):
        tf_adapters.save_adapter(model, tmp_path / name, format="adapterhub")
    assert not list(tmp_path.iterdir())


def test_a_head_for_masked_tokens_has_its_encoders_epsilon(tmp_path):
    encoder = folders.encoder("x/roberta")
    epsilon = encoder.layer_norm_epsilon
    assert epsilon != heads.MaskedLM.layer_norm_epsilon
    sizes = encoder.backbone.token_embedding.embeddings.shape
    head = heads.MaskedLM(*sizes, layer_norm_epsilon=epsilon)
    model = tf_adapters.adapt(encoder, methods.Pfeiffer(units=2), head)
    tf_adapters.save_adapter(model, tmp_path / "task", format="adapterhub")
    again = tf_adapters.load_adapter(tmp_path / "task", encoder)
    assert again.head.layer_norm_epsilon == epsilon


@pytest.mark.parametrize("library", ["adapterhub", "peft"])
def test_a_calibrated_head_keeps_its_probabilities(library, tmp_path):
    encoder = folders.encoder("adapterhub/bert_pfeiffer")
    head = heads.Classification(
        ("no", "yes"), temperature=2.5, reads="pooled_output"
    )
    model = tf_adapters.adapt(encoder, methods.LoRA(rank=2), head)
    tiny.randomize(model.trained_variables().values(), 0.8)
    tf_adapters.save_adapter(model, tmp_path / "task", format=library)
    again = tf_adapters.load_adapter(tmp_path / "task", encoder)
    assert again.head.temperature == 1
    features = tiny.batch(encoder)
    expected, found = (
        np.asarray(one.head.answer(one(features))["probabilities"])
        for one in (model, again)
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.ptp(expected) > 0.1


@pytest.mark.parametrize("library", ["adapterhub", "peft"])
def test_a_quantized_encoder_is_said(library, tmp_path, caplog):
    encoder = folders.encoder("adapterhub/bert_pfeiffer")
    quantization.quantize_encoder(encoder, "int8")
    model = tf_adapters.adapt(encoder, methods.LoRA(rank=2), None)
    tf_adapters.save_adapter(model, tmp_path / "task", format=library)
    assert f"int8, which the format {library} cannot store" in caplog.text
    assert "quantized to int8" in (tmp_path / "task/README.md").read_text()
