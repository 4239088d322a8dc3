"""Writes adapters in other libraries' formats, with what they answer here.

    python benchmarks/interchange.py --output=<output> \
        --encoders=<Hugging Face folder>,...
    .venv-peer/bin/python benchmarks/peers/interchange.py <output>

The second command, in the environment of `benchmarks/peers`, loads them there
and prints what is missing, unexpected and different.
"""

import argparse
import collections
import itertools
import json
from pathlib import Path

import keras
import numpy as np
from safetensors.numpy import save_file

import tf_adapters
from tf_adapters import heads
from tf_adapters import methods
from tf_adapters.common.errors import UserError

_LABELS = ("no", "yes", "perhaps")
_FROZEN = {"train_layer_norms": False}
# By name: the method, and the formats that can hold it.
_METHODS = {
    "houlsby": (methods.Houlsby(units=6, **_FROZEN), ["adapterhub"]),
    "pfeiffer": (methods.Pfeiffer(units=5, leave_out=(0,)), ["adapterhub"]),
    "forms": (
        methods.BottleneckForms(
            units=4, new_norm="both", learned_scaling="channel"
        ),
        ["adapterhub"],
    ),
    "compacter": (
        methods.Compacter(units=8, reduction_factor=None),
        ["adapterhub"],
    ),
    "invertible": (
        methods.Union((methods.Pfeiffer(units=4), methods.Invertible())),
        ["adapterhub"],
    ),
    "mam": (
        methods.Union(
            (
                methods.PrefixTuning(prefix_length=3, hidden_units=6),
                methods.BottleneckForms(
                    units=4, parallel=True, pretrained_norm="after"
                ),
            )
        ),
        ["adapterhub"],
    ),
    "lora": (methods.LoRA(rank=3, alpha=5), ["adapterhub", "peft"]),
    "lora_ffn": (
        methods.LoRA(rank=2, projections=("key", "ffn_down"), leave_out=(1,)),
        ["adapterhub", "peft"],
    ),
    "lora_all": (
        methods.LoRA(
            rank=2, projections=("query", "output", "ffn_up", "ffn_down")
        ),
        ["peft"],
    ),
    "ia3": (methods.IA3(), ["adapterhub"]),
    "ia3_peft": (methods.IA3(form="peft"), ["peft"]),
    "prefix": (
        methods.PrefixTuning(prefix_length=3, hidden_units=0),
        ["adapterhub"],
    ),
    "prefix_peft": (
        methods.PrefixTuning(prefix_length=3, hidden_units=6, form="peft"),
        ["peft"],
    ),
    "prompt": (methods.PromptTuning(prompt_length=3), ["adapterhub"]),
    "prompt_peft": (
        methods.PromptTuning(prompt_length=3, form="peft"),
        ["peft"],
    ),
    "layer_norm": (methods.LayerNorm(), ["peft"]),
}
# In PEFT's format a trained pooler of BERT is the hidden layer of `tanh`.
_HEADS = {
    "none": None,
    "first": heads.Classification(_LABELS),
    "pooled": heads.Classification(_LABELS, reads="pooled_output"),
    "tanh": heads.Classification(_LABELS, hidden_layer="tanh"),
    "relu": heads.Classification(_LABELS, hidden_layer="relu"),
    "gelu": heads.Classification(_LABELS, hidden_layer="gelu"),
    "multilabel": heads.MultiLabel(_LABELS),
    "multilabel_tanh": heads.MultiLabel(_LABELS, hidden_layer="tanh"),
    "regression": heads.Regression(),
    "regression_pooled": heads.Regression(reads="pooled_output"),
    "regression_tanh": heads.Regression(hidden_layer="tanh"),
    "regression_relu": heads.Regression(hidden_layer="relu"),
    "regression_gelu": heads.Regression(hidden_layer="gelu"),
    "words": heads.Tagging(_LABELS),
    "words_tanh": heads.Tagging(_LABELS, hidden_layer="tanh"),
    "span": heads.Span(),
    "span_gelu": heads.Span(hidden_layer="gelu"),
    "choice": heads.Choice(),
    "choice_pooled": heads.Choice(reads="pooled_output"),
    "choice_tanh": heads.Choice(hidden_layer="tanh"),
    # Made for each encoder.
    "masked": heads.MaskedLM,
}


def _inputs(encoder, has_choices):
    """Returns texts of random tokens, without segments; perhaps in pairs."""
    generator = np.random.default_rng(0)
    ids = generator.integers(5, 60, (4, 10)).astype("int32")
    mask = np.ones_like(ids)
    mask[1, 7:] = mask[2, 4:] = 0
    pad = 1 if "oberta" in type(encoder.backbone).__name__ else 0
    inputs = {"token_ids": np.where(mask == 1, ids, pad), "padding_mask": mask}
    if encoder.takes_segments:
        inputs["segment_ids"] = np.zeros_like(ids)
    if has_choices:
        inputs = {k: v.reshape(2, 2, -1) for k, v in inputs.items()}
    return inputs


def _output(model, inputs):
    """Returns logits, of masked tokens at all places, or the last vectors."""
    is_masked = isinstance(model.head, heads.MaskedLM)
    if model.head is not None and not is_masked:
        return model(inputs)
    vectors = model.encoder(inputs)["sequence_output"]
    if not is_masked:
        return vectors
    return model.head_layer.logits(vectors, model.encoder.token_embeddings)


def _write(output, case, source, method, head, form):
    """Writes one case; returns why not, or `None`."""
    encoder, _ = tf_adapters.load_encoder(source, with_tokenizer=False)
    if head is heads.MaskedLM:
        head = heads.MaskedLM.for_encoder(encoder)
    keras.utils.set_random_seed(len(case))
    try:
        model = tf_adapters.adapt(encoder, method, head)
        generator = np.random.default_rng(len(case))
        for variable in model.trained_variables().values():
            noise = 0.3 * generator.standard_normal(variable.shape)
            variable.assign_add(noise.astype("float32"))
        folder = Path(output) / case
        tf_adapters.save_adapter(model, folder / "task", format=form)
    except UserError as error:
        return str(error)
    inputs = _inputs(encoder, isinstance(head, heads.Choice))
    tensors = {name: np.asarray(value) for name, value in inputs.items()}
    tensors["output"] = _output(model, inputs).numpy()
    save_file(tensors, folder / "expected.safetensors")
    facts = {"encoder": source, "format": form, "head": head is not None}
    (folder / "about.json").write_text(json.dumps(facts))
    return None


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--output", required=True, help="New folder.")
    parser.add_argument(
        "--encoders", required=True, help="Hugging Face folders of encoders."
    )
    arguments = parser.parse_args()
    encoders = arguments.encoders.split(",")
    written, refusals = 0, collections.Counter()
    for source, name, head in itertools.product(encoders, _METHODS, _HEADS):
        method, forms = _METHODS[name]
        for form in forms:
            case = f"{Path(source).name}_{name}_{head}_{form}"
            refusal = _write(
                arguments.output, case, source, method, _HEADS[head], form
            )
            written += refusal is None
            if refusal:
                refusals[refusal] += 1
    for refusal, number in refusals.items():
        print(f"{number} refused: {refusal}")
    print(f"{written} folders in {arguments.output}")


if __name__ == "__main__":
    main()
