"""An `Entry` for each method that PEFT's format can store (`peft` 0.21.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tf_adapters import methods
from tf_adapters.interop.method_table import Entry
from tf_adapters.interop.method_table import Row
from tf_adapters.interop.peft import lora
from tf_adapters.interop.tensor_names import Layout
from tf_adapters.interop.tensor_names import TensorName
from tf_adapters.interop.tensor_names import norm

if TYPE_CHECKING:
    from tf_adapters.interop.architectures import Architecture

# PEFT's layout of the (IA)^3 vector of each projection; see `TensorName`.
_IA3_LAYOUTS: dict[str, Layout] = {
    "key": "column",
    "value": "column",
    "output": "row",
    "ffn_down": "row",
}


def _ia3_names(
    method: methods.IA3, shape: methods.EncoderShape, architecture: Architecture
) -> list[TensorName]:
    return [
        TensorName("vector", ("ia3_l",), layout).within(
            f"block_{block}_{name}/",
            f"{architecture.module(block, architecture.projections[name])}.",
        )
        for block, is_kept in enumerate(method.kept_blocks(shape))
        for name, layout in _IA3_LAYOUTS.items()
        if is_kept
    ]


def _ia3_modules(
    method: methods.IA3, shape: methods.EncoderShape, architecture: Architecture
) -> dict[str, list[str]]:
    modules = [architecture.peft_module(name) for name in _IA3_LAYOUTS]
    if modules[2].endswith(modules[3]):
        del modules[2]
    return {"feedforward_modules": modules[2:], "target_modules": modules}


_IA3 = Entry(
    methods.IA3,
    (),
    _ia3_names,
    {
        "exclude_modules": None,
        "fan_in_fan_out": False,
        "feedforward_modules": None,
        "init_ia3_weights": True,
        "peft_type": "IA3",
        "target_modules": None,
    },
    needs={"fan_in_fan_out": (False,)},
    fixed={"form": "peft", "leave_out": ()},
    of_encoder=_ia3_modules,
    hint=(
        "tf_adapters has PEFT's (IA)^3 on BERT's default modules: key, value, "
        "and both that end in output.dense."
    ),
)


def _norms(
    method: methods.LayerNorm,
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> list[TensorName]:
    modules = {"embeddings_layer_norm": "embeddings.LayerNorm"} | {
        f"{architecture.block_names}_{block}/{ours}": architecture.module(
            block, theirs
        )
        for block in range(shape.num_blocks)
        for ours, theirs in architecture.norms.items()
    }
    return [
        name
        for ours, theirs in modules.items()
        for name in norm(f"{ours}/", f"{theirs}.ln_tuning_layers")
    ]


def _norm_modules(
    method: methods.LayerNorm,
    shape: methods.EncoderShape,
    architecture: Architecture,
) -> dict[str, list[str]]:
    modules = {"LayerNorm", *architecture.norms.values()}
    return {"target_modules": sorted({m.split(".")[-1] for m in modules})}


_LAYER_NORM = Entry(
    methods.LayerNorm,
    (),
    _norms,
    {
        "exclude_modules": None,
        "peft_type": "LN_TUNING",
        "target_modules": None,
    },
    of_encoder=_norm_modules,
)
_PROMPT_KEYS = (
    "encoder_hidden_size",
    "init_weights",
    "num_attention_heads",
    "num_layers",
    "num_transformer_submodules",
    "prefix_projection",
    "prompt_tuning_init",
    "prompt_tuning_init_text",
    "token_dim",
    "tokenizer_kwargs",
    "tokenizer_name_or_path",
)
_LENGTH = "num_virtual_tokens"


def _sizes(shape: methods.EncoderShape, width: int) -> dict[str, int]:
    return {
        "num_attention_heads": shape.num_heads,
        "num_layers": shape.num_blocks,
        "num_transformer_submodules": 1,
        "token_dim": width,
    }


_PREFIX = Entry(
    methods.PrefixTuning,
    (Row(_LENGTH, "prefix_length"),),
    lambda *_: [TensorName("shared_prefix/vectors", ("prompt_embeddings",))],
    {"peft_type": "PREFIX_TUNING", "prefix_projection": False},
    # PEFT saves the output of the prefix's network, not the network itself.
    ignored=_PROMPT_KEYS,
    fixed={
        "form": "peft",
        "hidden_units": 0,
        "use_gating": False,
        "leave_out": (),
    },
    of_encoder=lambda method, shape, architecture: {
        **_sizes(shape, shape.width),
        "encoder_hidden_size": shape.width,
    },
)
_PROMPT = Entry(
    methods.PromptTuning,
    (Row(_LENGTH, "prompt_length"),),
    lambda *_: [TensorName("prompt/vectors", ("prompt_embeddings",))],
    {
        "peft_type": "PROMPT_TUNING",
        "prompt_tuning_init": "RANDOM",
        "prompt_tuning_init_text": None,
        "tokenizer_name_or_path": None,
    },
    ignored=_PROMPT_KEYS,
    fixed={"form": "peft"},
    # ELECTRA's embeddings can be narrower than its blocks.
    of_encoder=lambda method, shape, architecture: _sizes(
        shape, shape.read_in("word_embeddings")
    ),
)
# Dict from a configuration's `peft_type` to the `Entry` of the method.
ENTRIES = {
    entry.defaults["peft_type"]: entry
    for entry in (lora.ENTRY, _IA3, _LAYER_NORM, _PREFIX, _PROMPT)
}
BY_METHOD = {entry.method: entry for entry in ENTRIES.values()}
