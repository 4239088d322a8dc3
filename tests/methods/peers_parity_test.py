"""Compares other methods with the libraries that define them.

`tests/fixtures/make_methods_fixtures.py` made the fixtures: outputs, a loss,
and its gradients for all trained weights.
"""

import json
from pathlib import Path
import re

import numpy as np
import pytest
from safetensors.numpy import load_file
import tensorflow as tf

from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.config import resolve
from tf_adapters.encoders.load import load_encoder
from tf_adapters.methods.method import EncoderShape
from tf_adapters.models.adapter_model import adapt
from tf_adapters.models.variable_groups import count_weights

FIXTURES = Path(__file__).parents[1] / "fixtures"
_PREFIX = methods.PrefixTuning(prefix_length=3, hidden_units=6)
_PARALLEL = {
    "parallel": True,
    "pretrained_norm": "after",
    "reduction_factor": 4.0,
    "initialization": "zero_up",
}
_UP_AND_DOWN = {"reduction_factor": 4.0}


def _form(**options):
    return methods.BottleneckForms(reduction_factor=4.0, **options)


CASES = {
    "ia3": methods.IA3(),
    "peft_ia3": methods.IA3(form="peft"),
    "prefix_flat": methods.PrefixTuning(prefix_length=3, hidden_units=0),
    "peft_prefix_flat": methods.PrefixTuning(
        prefix_length=3, hidden_units=0, form="peft"
    ),
    "prefix": _PREFIX,
    "peft_prefix": methods.PrefixTuning(
        prefix_length=3, hidden_units=6, form="peft"
    ),
    "prefix_leave_out": methods.PrefixTuning(
        prefix_length=3, hidden_units=6, leave_out=(0,)
    ),
    "prompt": methods.PromptTuning(prompt_length=3),
    "prompt_after_first": methods.PromptTuning(
        prompt_length=3, stands="after_first"
    ),
    "peft_prompt": methods.PromptTuning(prompt_length=3, form="peft"),
    "parallel": methods.BottleneckForms(**_PARALLEL, scaling=4.0),
    "scaled_parallel": methods.BottleneckForms(
        **_PARALLEL, learned_scaling="scalar"
    ),
    "compacter": methods.Compacter(reduction_factor=4.0),
    "compacter_plus_plus": methods.Compacter(
        placement="pfeiffer", reduction_factor=4.0
    ),
    "invertible": methods.Union(
        (methods.Pfeiffer(**_UP_AND_DOWN), methods.Invertible())
    ),
    "mam": methods.Union(
        (_PREFIX, methods.BottleneckForms(**_PARALLEL, scaling=4.0))
    ),
    "unipelt": methods.Union(
        (
            methods.PrefixTuning(
                prefix_length=3, hidden_units=6, use_gating=True
            ),
            _form(use_gating=True),
            methods.LoRA(rank=2, use_gating=True),
        )
    ),
    "lora_gated": methods.LoRA(rank=2, use_gating=True),
    "adapter_plus": _form(
        pretrained_norm="before",
        residual="read",
        learned_scaling="channel",
        activation="gelu",
    ),
    "form_before_sum": _form(pretrained_norm="before", residual="sum"),
    "form_before_read": _form(pretrained_norm="before", residual="read"),
    "form_after": _form(pretrained_norm="after"),
    "form_none": _form(pretrained_norm="none"),
    "form_both_sum": _form(position="both", residual="sum"),
    "form_both_read": _form(residual="read", new_norm="before"),
    "form_new_both": _form(position="bottom", new_norm="both"),
    "form_new_after_of_sum": _form(new_norm="after", residual_in_new_norm=True),
    "form_channel": _form(learned_scaling="channel"),
}
_PLACES = {
    "attention.output.adapters.fixture": "after_attention",
    "output.adapters.fixture": "after_ffn",
    "attention.self.prefix_tuning.prefix_gates.fixture": "keys_and_values/gate",
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "output",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
}
_PARTS = {
    "loras.fixture.lora_B": "vector",
    "ia3_l.default": "vector",
    "loras.fixture.gate.weight": "gate/kernel",
    "loras.fixture.gate.bias": "gate/bias",
    "gate.weight": "gate/kernel",
    "gate.bias": "gate/bias",
    "weight": "kernel",
    "bias": "bias",
    "scaling": "scaling",
    "adapter_down.0.W_left": "down_left",
    "adapter_down.0.W_right": "down_right",
    "adapter_down.0.b": "down_bias",
    "adapter_up.W_left": "up_left",
    "adapter_up.W_right": "up_right",
    "adapter_up.b": "up_bias",
    "adapter_up.weight": "delta/up_kernel",
    "adapter_up.bias": "delta/up_bias",
    "adapter_norm_before.weight": "norm_before_gamma",
    "adapter_norm_before.bias": "norm_before_beta",
    "adapter_norm_after.weight": "norm_after_gamma",
    "adapter_norm_after.bias": "norm_after_beta",
    **{
        f"adapter_down.{n}.{theirs}": f"delta/down_{ours}"
        for n in (0, 1)
        for theirs, ours in (("weight", "kernel"), ("bias", "bias"))
    },
}
_LORA = {
    "loras.fixture.lora_A": "down_kernel",
    "loras.fixture.lora_B": "up_kernel",
}
_ENDS = {
    "self_prefix.control_trans": "shared_prefix/vectors",
    "wte.weight": "shared_prefix/embeddings",
    "control_trans.0.weight": "shared_prefix/down_kernel",
    "control_trans.0.bias": "shared_prefix/down_bias",
    "control_trans.2.weight": "shared_prefix/up_kernel",
    "control_trans.2.bias": "shared_prefix/up_bias",
    "transform.0.weight": "shared_prefix/down_kernel",
    "transform.0.bias": "shared_prefix/down_bias",
    "transform.2.weight": "shared_prefix/up_kernel",
    "transform.2.bias": "shared_prefix/up_bias",
    "prompt_embedding.weight": "prompt/vectors",
    "phm_rule": "shared_factors/factors",
    **{
        f"invertible_adapters.fixture.{theirs}.{n}.{part}": (
            f"invertible/{ours}/{side}_{kind}"
        )
        for theirs, ours in (("F", "first"), ("G", "second"))
        for n, side in ((0, "down"), (2, "up"))
        for part, kind in (("weight", "kernel"), ("bias", "bias"))
    },
}


def _our_name(name, case):
    if name == "prompt_encoder.default.embedding.weight":
        return {
            "peft_prefix_flat": "shared_prefix/vectors",
            "peft_prefix": "shared_prefix/embeddings",
            "peft_prompt": "prompt/vectors",
        }[case]
    for end, ours in _ENDS.items():
        if name.endswith(end):
            return ours
    block, rest = re.search(r"encoder\.layer\.(\d+)\.(.*)", name).groups()
    start = next(s for s in _PLACES if rest.startswith(f"{s}."))
    part = rest.removeprefix(f"{start}.")
    parts = _PARTS if case == "ia3" else {**_PARTS, **_LORA}
    return f"block_{block}_{_PLACES[start]}/{parts[part]}"


# PyTorch's linear layers store kernels the other way round; these are none.
_STAY = ("prompt/", "embeddings", "shared_prefix/vectors", "_left", "_right")


def _converted(name, value, shape):
    stays = any(part in name for part in _STAY) or value.ndim != 2
    return value.reshape(shape) if stays else value.T.reshape(shape)


def _load(case):
    tensors = load_file(FIXTURES / "methods" / f"{case}.safetensors")
    encoder, _ = load_encoder(FIXTURES / "adapters" / "encoders" / "bert")
    model = adapt(encoder, CASES[case])
    variables = model.trained_variables()
    by_kind = {"input": {}, "weight": {}, "gradient": {}}
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        if kind == "input":
            by_kind[kind][rest] = value
        elif kind in by_kind:
            ours = _our_name(rest, case)
            shape = variables[ours].shape
            by_kind[kind][ours] = _converted(ours, value, shape)
    assert set(by_kind["weight"]) == set(variables)
    for name, value in by_kind["weight"].items():
        variables[name].assign(value)
    return model, tensors, by_kind


def _run(model, inputs):
    names = ("token_ids", "padding_mask", "segment_ids")
    outputs = model({name: inputs[name] for name in names})
    text, first = outputs["sequence_output"], outputs["first_token_output"]
    mask = inputs["padding_mask"][:, :, None].astype("float32")
    loss = tf.reduce_sum(text * inputs["text_weights"] * mask)
    return text, first, loss + tf.reduce_sum(first * inputs["first_weights"])


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_the_librarys(case):
    model, expected, by_kind = _load(case)
    names, variables = zip(*model.trained_variables().items(), strict=True)
    values = [variable.value for variable in variables]
    with tf.GradientTape() as tape:
        tape.watch(values)
        text, first, loss = _run(model, by_kind["input"])
    mask = by_kind["input"]["padding_mask"][:, :, None]
    for actual, wanted in (
        (text * mask, expected["text"] * mask),
        (first, expected["first"]),
    ):
        np.testing.assert_allclose(actual, wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(loss, expected["loss"], rtol=1e-5, atol=1e-5)
    gradients = tape.gradient(loss, values)
    for name, gradient in zip(names, gradients, strict=True):
        np.testing.assert_allclose(
            gradient,
            by_kind["gradient"][name],
            rtol=1e-5,
            atol=1e-5,
            err_msg=name,
        )


_HEAD = {
    "heads.0.weight": "head/kernel",
    "heads.0.bias": "head/bias",
    "heads.2.weight": "head/gamma",
    "heads.2.bias": "head/beta",
    "heads.3.bias": "head/output_bias",
}


def test_masked_tokens_are_reported_behind_the_inverse():
    tensors = load_file(FIXTURES / "methods/masked_lm.safetensors")
    encoder, _ = load_encoder(FIXTURES / "adapters" / "encoders" / "bert")
    head = heads.MaskedLM.for_encoder(encoder)
    model = adapt(encoder, CASES["invertible"], head)
    variables = model.trained_variables()
    for name, value in tensors.items():
        kind, _, rest = name.partition("/")
        if kind == "weight":
            ours = _HEAD.get(rest) or _our_name(rest, "invertible")
            variable = variables.pop(ours)
            variable.assign(_converted(ours, value, variable.shape))
    assert not variables
    names = ("token_ids", "padding_mask", "segment_ids")
    inputs = {name: tensors[f"input/{name}"] for name in names}
    outputs = model.encode(inputs)
    logits = model.head_layer.logits(
        outputs["sequence_output"], model.encoder.token_embeddings
    )
    there = inputs["padding_mask"] == 1
    np.testing.assert_allclose(
        logits.numpy()[there], tensors["logits"][there], rtol=1e-5, atol=1e-5
    )


# The library's names of its configurations, and ours of the same.
_ON_BERT = {
    "ia3": methods.IA3(),
    "prefix_tuning": methods.PrefixTuning(),
    "prefix_tuning_flat": methods.PrefixTuning(hidden_units=0),
    "prompt_tuning": methods.PromptTuning(),
    "compacter": methods.Compacter(),
    "compacter++": methods.Compacter(placement="pfeiffer"),
    "par_bn": methods.BottleneckForms(
        **{**_PARALLEL, "reduction_factor": 2.0}, scaling=4.0
    ),
}


# Presets of the same names as the library's.
_PRESETS = {
    "mam": "mam",
    "unipelt": "unipelt",
    "scaled_par_bn": "scaled_parallel",
}
for _name, _preset in _PRESETS.items():
    _ON_BERT[_name] = resolve.resolve_config(
        {"task": "sst2", "method": _preset}
    ).method


@pytest.mark.parametrize("name", _ON_BERT)
def test_defaults_train_as_many_weights_as_the_librarys(name):
    counts = json.loads((FIXTURES / "methods" / "weights.json").read_text())
    shape = EncoderShape(12, 768, 3072, num_heads=12)
    slots = [
        (place, slot)
        for found in [
            *_ON_BERT[name].make_slots(shape),
            _ON_BERT[name].make_embedding_slots(shape),
        ]
        for place, slot in found.items()
    ]
    variables = {}
    for place, slot in slots:
        slot.build((None, None, shape.read_in(place)))
        variables.update((id(v), v) for v in slot.variables)
    assert count_weights(variables.values()) == counts[name]
