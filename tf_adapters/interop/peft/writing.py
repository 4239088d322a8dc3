"""Writes adapters as folders of Hugging Face's PEFT (`peft` 0.21.2)."""

import json
from pathlib import Path

import numpy as np
import safetensors.numpy

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop import heads
from tf_adapters.interop import public_names
from tf_adapters.interop import tensor_names
from tf_adapters.interop.peft import lora as peft_lora
from tf_adapters.interop.peft import names as peft_names
from tf_adapters.interop.tensor_names import TensorName

_VERSION = "0.21.2"
_SAVED = {
    "text": ["classifier", "score"],
    "words": ["classifier", "score"],
    "span": ["qa_outputs"],
}


def write_adapter(folder, config, tensors, shape, architecture):
    """Writes an adapter and its head in PEFT's format.

    Args:
        folder: Path of an existing folder.
        config: Contents of our `adapter_config.json`.
        tensors: Dict from our tensor names to arrays.
        shape: `EncoderShape`.
        architecture: `Architecture`.

    Raises:
        AdapterError: If PEFT has no such method or head.
    """
    folder, method = Path(folder), methods.from_config(config["method"])
    writers = {
        methods.LoRA: _write_lora,
        methods.IA3: _write_ia3,
        methods.LayerNorm: _write_norms,
        methods.PrefixTuning: _write_prefix,
        methods.PromptTuning: _write_prompt,
    }
    if type(method) not in writers:
        raise AdapterError(
            f"PEFT has no method `{methods.name_of(method)}`. Bottleneck "
            "adapters and their fusion go into AdapterHub's format: "
            "--format=adapterhub."
        )
    of_head = {k: v for k, v in tensors.items() if k.startswith("head/")}
    rest = {k: v for k, v in tensors.items() if k not in of_head}
    own, names, rest = writers[type(method)](method, shape, architecture, rest)
    of_task, head_names, saved = _head(config["head"], architecture)
    if isinstance(method, methods.PrefixTuning):
        _check_prefix(of_task, architecture)
    start = "base_model.model."
    if config["head"] is not None:
        start += f"{architecture.prefix}."
    names = [
        n if n.theirs == ("prompt_embeddings",) else _renamed(n, start)
        for n in names
    ]
    is_prompt = "num_virtual_tokens" in own
    head_start = "base_model." if is_prompt else "base_model.model."
    pooler_start = head_start
    if not architecture.pooler_in_head:
        pooler_start += f"{architecture.prefix}."
    names += [
        _renamed(
            n, pooler_start if peft_names.POOLER in n.theirs[0] else head_start
        )
        for n in head_names
    ]
    found = tensor_names.to_theirs(names, rest | of_head, _refusal)
    safetensors.numpy.save_file(
        found, folder / "adapter_model.safetensors", {"format": "pt"}
    )
    text = json.dumps(
        {
            "auto_mapping": None,
            "base_model_name_or_path": public_names.hub_id(
                config["encoder"]["name"]
            ),
            "inference_mode": True,
            "modules_to_save": saved,
            "peft_version": _VERSION,
            "revision": None,
            "task_type": of_task,
            **own,
        },
        indent=2,
        sort_keys=True,
    )
    path = folder / adapter_folder.CONFIG_FILE
    path.write_text(f"{text}\n", encoding="utf-8")


def _renamed(name, start):
    theirs = tuple(f"{start}{theirs}" for theirs in name.theirs)
    return TensorName(name.ours, theirs, name.layout, name.rows)


def _head(config, architecture):
    """Returns PEFT's task, the head's `TensorName`s, and the saved modules."""
    if config is None:
        return "FEATURE_EXTRACTION", [], None
    ours = heads.form_of(config)
    if ours.kind not in peft_names.TASKS:
        raise AdapterError(
            "PEFT has no multiple-choice task. Export the adapter with "
            "--format=adapterhub, or without its head: --with_head=false."
        )
    saved = _SAVED[ours.kind]
    theirs = heads.huggingface_form(ours.kind, architecture)
    if ours.kind == "text" and architecture.pooler_in_head:
        saved = [*saved, "pooler"]
    if (ours.reads, ours.hidden_layer) == (theirs.reads, theirs.hidden_layer):
        return peft_names.TASKS[ours.kind], theirs.tensor_names(), saved
    trains_pooler = theirs.reads == "pooled_output" and (
        ours.reads,
        ours.hidden_layer,
    ) == ("first_token", "tanh")
    if not trains_pooler:
        settings = f"head.hidden_layer={theirs.hidden_layer}"
        if ours.kind == "text":
            settings = f"head.reads={theirs.reads},{settings}"
        raise AdapterError(
            "PEFT saves the head of "
            f"{architecture.class_name}{heads.CLASSES[ours.kind]}, but this "
            f"head differs: train with --params_override={settings}, export "
            "with --format=adapterhub, or without its head: "
            "--with_head=false."
        )
    form = heads.HeadForm(
        ours.kind,
        hidden_layer="tanh",
        modules=("classifier", peft_names.POOLER),
    )
    return peft_names.TASKS[ours.kind], form.tensor_names(), [*saved, "pooler"]


def _write_lora(method, shape, architecture, tensors):
    config, names = peft_lora.write(method, shape, architecture)
    return {"peft_type": "LORA", **config}, names, tensors


def _write_ia3(method, shape, architecture, tensors):
    if method.form != "peft" or method.leave_out:
        raise AdapterError(
            "PEFT has (IA)^3 as method.form=peft, in all blocks. AdapterHub's "
            "form computes something else: export it with "
            "--format=adapterhub."
        )
    modules = [architecture.peft_module(name) for name in peft_names.IA3]
    if modules[2].endswith(modules[3]):
        del modules[2]
    config = {
        "exclude_modules": None,
        "fan_in_fan_out": False,
        "feedforward_modules": modules[2:],
        "init_ia3_weights": True,
        "peft_type": "IA3",
        "target_modules": modules,
    }
    return config, peft_names.ia3_names(method, shape, architecture), tensors


def _write_norms(method, shape, architecture, tensors):
    modules = {"LayerNorm", *architecture.norms.values()}
    config = {
        "exclude_modules": None,
        "peft_type": "LN_TUNING",
        "target_modules": sorted({name.split(".")[-1] for name in modules}),
    }
    return config, peft_names.norm_names(shape, architecture), tensors


def _of_prompt(kind, length, shape, width):
    return {
        "num_attention_heads": shape.num_heads,
        "num_layers": shape.num_blocks,
        "num_transformer_submodules": 1,
        "num_virtual_tokens": length,
        "peft_type": kind,
        "token_dim": width,
    }


def _write_prefix(method, shape, architecture, tensors):
    if method.form != "peft" or method.leave_out or method.use_gating:
        raise AdapterError(
            "PEFT has prefix tuning as method.form=peft, in all blocks and "
            "without gates. AdapterHub's form computes something else: export "
            "it with --format=adapterhub."
        )
    if method.hidden_units:
        tensors = {"shared_prefix/vectors": _vectors_of(method, tensors)}
    own = _of_prompt("PREFIX_TUNING", method.prefix_length, shape, shape.width)
    own |= {"encoder_hidden_size": shape.width, "prefix_projection": False}
    name = TensorName("shared_prefix/vectors", ("prompt_embeddings",))
    return own, [name], tensors


def _check_prefix(task, architecture):
    """Raises an error if PEFT's prefix tuning does not run on the model."""
    if not architecture.takes_prefix:
        raise AdapterError(
            f"PEFT's prefix tuning does not run on {architecture.class_name}."
        )
    if task == peft_names.TASKS["text"] and architecture.model_type != "bert":
        raise AdapterError(
            "PEFT's prefix tuning does not run on "
            f"{architecture.class_name}{heads.CLASSES['text']}, which has no "
            "pooler. Export it without its head: --with_head=false."
        )


def _vectors_of(method, tensors):
    """Returns the prefix's vectors, the output of its network.

    PEFT saves only these, not the network.
    """
    if method.activation != "tanh":
        raise AdapterError(
            "PEFT's prefixes come from a network with method.activation=tanh."
        )
    part = {k.removeprefix("shared_prefix/"): v for k, v in tensors.items()}
    hidden = np.tanh(
        part["embeddings"] @ part["down_kernel"] + part["down_bias"]
    )
    return hidden @ part["up_kernel"] + part["up_bias"]


def _write_prompt(method, shape, architecture, tensors):
    if method.form != "peft":
        raise AdapterError(
            "PEFT has prompt tuning as method.form=peft. AdapterHub's form "
            "computes something else: export it with --format=adapterhub."
        )
    # ELECTRA's embeddings can be narrower than its blocks.
    width = shape.read_in("word_embeddings")
    own = _of_prompt("PROMPT_TUNING", method.prompt_length, shape, width)
    own |= {"prompt_tuning_init": "RANDOM", "prompt_tuning_init_text": None}
    own |= {"tokenizer_name_or_path": None}
    name = TensorName("prompt/vectors", ("prompt_embeddings",))
    return own, [name], tensors


def _refusal(left):
    return AdapterError(
        f"{len(left)} trained tensors cannot be saved in PEFT's format, "
        f"`{left[0]}` for example. Export the adapter with "
        "--format=adapterhub."
    )
