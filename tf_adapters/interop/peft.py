"""Folders of Hugging Face's PEFT, read and written (`peft` 0.21.2)."""

import json
from pathlib import Path
import re

import numpy as np
import safetensors.numpy

from tf_adapters import methods
from tf_adapters.common import adapter_folder
from tf_adapters.common.errors import AdapterError
from tf_adapters.interop import adapterhub
from tf_adapters.interop import heads
from tf_adapters.interop import peft_lora
from tf_adapters.interop import tensor_names
from tf_adapters.interop.architectures import check_model_type
from tf_adapters.interop.formats import read_json
from tf_adapters.interop.tensor_names import TensorName

_VERSION = "0.21.2"
_TASKS = {"text": "SEQ_CLS", "words": "TOKEN_CLS", "span": "QUESTION_ANS"}
_SAVED = {
    "text": ["classifier", "score"],
    "words": ["classifier", "score"],
    "span": ["qa_outputs"],
}
_POOLER = "pooler.dense"
_COMMON = {
    "auto_mapping",
    "base_model_name_or_path",
    "inference_mode",
    "modules_to_save",
    "peft_type",
    "peft_version",
    "revision",
    "task_type",
}
_PROMPT = {
    "encoder_hidden_size",
    "init_weights",
    "num_attention_heads",
    "num_layers",
    "num_transformer_submodules",
    "num_virtual_tokens",
    "prefix_projection",
    "prompt_tuning_init",
    "prompt_tuning_init_text",
    "token_dim",
    "tokenizer_kwargs",
    "tokenizer_name_or_path",
}
# The side on which each projection's vector of (IA)^3 is.
_IA3 = {"key": "column", "value": "column", "output": "row", "ffn_down": "row"}


class PeftConfig(dict):
    """A parsed `adapter_config.json` of PEFT.

    Args:
        values: Dict.
        source: Path, for errors.
    """

    def __init__(self, values, source):
        super().__init__(values)
        self.source = source

    def check_known(self, known):
        """Raises an `AdapterError` if an unknown key has a value."""
        for key, value in self.items():
            if key not in known and key not in _COMMON and value:
                raise AdapterError(
                    f"{self.source} has `{key}: {value!r}`, which tf_adapters "
                    "has no method for."
                )

    def check(self, key, *allowed):
        """Raises an `AdapterError` unless a value is the first or another."""
        if self.get(key, allowed[0]) not in allowed:
            raise AdapterError(
                f"{self.source} has `{key}: {self[key]!r}`, which tf_adapters "
                "has no method for."
            )

    def to_ours(self, names, tensors):
        """Returns a dict from our names to arrays."""
        return tensor_names.to_ours(names, tensors, self.source.parent)


def read_adapter(folder, shape, architecture, with_head=True):
    """Returns method, head and tensors; see `adapterhub.read_adapter`."""
    folder = Path(folder)
    path = folder / adapter_folder.CONFIG_FILE
    config = PeftConfig(read_json(path), path)
    readers = {
        "LORA": peft_lora.read,
        "IA3": _read_ia3,
        "LN_TUNING": _read_norms,
        "PREFIX_TUNING": _read_prefix,
        "PROMPT_TUNING": _read_prompt,
    }
    _check_model(config, architecture)
    kind = config["peft_type"]
    if kind not in readers:
        raise AdapterError(
            f"{path} is a `{kind}`; of PEFT's kinds tf_adapters has "
            f"{', '.join(readers)}."
        )
    tensors = _without_prefix(_read_weights(folder), architecture)
    form, names = _head_form(config, tensors, architecture)
    of_head = {n for name in names for n in name.theirs}
    head_tensors = {k: v for k, v in tensors.items() if k in of_head}
    rest = {k: v for k, v in tensors.items() if k not in of_head}
    method, found = readers[kind](config, shape, architecture, rest)
    if not with_head:
        return method, None, found
    found |= config.to_ours(names, head_tensors)
    if form is None:
        return method, None, found
    number = len(found["head/bias"])
    labels = [f"LABEL_{i}" for i in range(number)]
    return method, form.to_config(labels), found


def _check_model(config, architecture):
    """Raises an error if the file names another kind of encoder.

    It says so of models without a task; of others the tensors' names do.
    """
    mapping = config.get("auto_mapping") or {}
    found = re.match(
        r"transformers\.models\.(\w+)", mapping.get("parent_library") or ""
    )
    if found:
        model_type = found[1].replace("_", "-")
        check_model_type(model_type, architecture, config.source)


def _read_weights(folder):
    safe = folder / "adapter_model.safetensors"
    if safe.exists():
        return adapter_folder.read_tensors(safe)
    return adapterhub.read_weights(folder / "adapter_model.bin")


def _without_prefix(tensors, architecture):
    """Returns tensors by names that begin in the encoder or with the head."""
    found = {}
    for name, tensor in tensors.items():
        for start in ("base_model.", "model.", f"{architecture.prefix}."):
            name = name.removeprefix(start)
        if name in found:
            raise ValueError(f"two tensors are `{name}`")
        found[name] = tensor
    return found


def _kind_of_head(config):
    """Returns the kind of head that a folder is for, or `None`."""
    kinds = {task: kind for kind, task in _TASKS.items()}
    task = config.get("task_type")
    if task in kinds:
        return kinds[task]
    wrapped = (config.get("auto_mapping") or {}).get("base_model_class", "")
    ends = {end: kind for kind, end in heads.CLASSES.items() if kind in _TASKS}
    found = [kind for end, kind in ends.items() if wrapped.endswith(end)]
    return found[0] if found else None


def _head_form(config, tensors, architecture):
    """Returns the `HeadForm`, or `None`, and the head's `TensorName`s."""
    kind = _kind_of_head(config)
    if kind is None:
        return None, []
    form = heads.huggingface_form(kind, architecture)
    if form.reads == "pooled_output" and f"{_POOLER}.weight" in tensors:
        # A pooler that trained is a hidden layer of the head.
        form = heads.HeadForm(
            kind, hidden_layer="tanh", modules=("classifier", _POOLER)
        )
    return form, form.tensor_names()


def _read_ia3(config, shape, architecture, tensors):
    config.check_known(
        {"exclude_modules", "feedforward_modules", "init_ia3_weights"}
        | {"target_modules", "fan_in_fan_out"}
    )
    config.check("fan_in_fan_out", False)
    method = methods.IA3(form="peft")
    names = _ia3_names(method, shape, architecture)
    found = {name.removesuffix(".weight"): v for name, v in tensors.items()}
    try:
        return method, config.to_ours(names, found)
    except AdapterError as error:
        raise AdapterError(
            f"{error} tf_adapters has PEFT's (IA)^3 on BERT's default modules: "
            "key, value, and both that end in output.dense."
        ) from error


def _ia3_names(method, shape, architecture):
    return [
        TensorName(
            f"block_{block}_{name}/vector",
            (f"{architecture.module(block, module)}.ia3_l",),
            layout,
        )
        for block, kept in enumerate(method.kept_blocks(shape))
        for name, layout in _IA3.items()
        for module in (architecture.projections[name],)
        if kept
    ]


def _norm_names(shape, architecture):
    modules = {"embeddings_layer_norm": "embeddings.LayerNorm"} | {
        f"transformer_layer_{block}/{ours}": architecture.module(block, theirs)
        for block in range(shape.num_blocks)
        for ours, theirs in architecture.norms.items()
    }
    return [
        TensorName(f"{ours}/{mine}", (f"{theirs}.ln_tuning_layers.{part}",))
        for ours, theirs in modules.items()
        for mine, part in (("gamma", "weight"), ("beta", "bias"))
    ]


def _read_norms(config, shape, architecture, tensors):
    config.check_known({"exclude_modules", "target_modules"})
    names = _norm_names(shape, architecture)
    return methods.LayerNorm(), config.to_ours(names, tensors)


def _vectors(name, tensors, config, shape):
    """Returns a prompt's vectors; those of two encoders may look alike."""
    config.check_known(_PROMPT)
    sizes = {"num_layers": shape.num_blocks, "token_dim": shape.width}
    for key, size in sizes.items():
        if config.get(key) not in (None, size):
            raise AdapterError(
                f"{config.source} is for encoders of `{key}: {config[key]}`; "
                f"this one has {size}."
            )
    names = [TensorName(name, ("prompt_embeddings",))]
    return config.to_ours(names, tensors)


def _read_prefix(config, shape, architecture, tensors):
    # What a projection gave; PEFT does not save the projection itself.
    found = _vectors("shared_prefix/vectors", tensors, config, shape)
    length = config["num_virtual_tokens"]
    return methods.PrefixTuning(length, 0, form="peft"), found


def _read_prompt(config, shape, architecture, tensors):
    found = _vectors("prompt/vectors", tensors, config, shape)
    return methods.PromptTuning(config["num_virtual_tokens"], "peft"), found


def write_adapter(folder, config, tensors, shape, architecture):
    """Writes an adapter, and its head, as PEFT does.

    Args:
        folder: Path of a folder that exists.
        config: What our `adapter_config.json` says.
        tensors: Dict from our names to arrays.
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
    start = "base_model.model."
    if config["head"] is not None:
        start += f"{architecture.prefix}."
    names = [
        n if n.theirs == ("prompt_embeddings",) else _renamed(n, start)
        for n in names
    ]
    is_prompt = "num_virtual_tokens" in own
    head_start = "base_model." if is_prompt else "base_model.model."
    pooler_start = f"{head_start}{architecture.prefix}."
    names += [
        _renamed(n, pooler_start if _POOLER in n.theirs[0] else head_start)
        for n in head_names
    ]
    found = tensor_names.to_theirs(names, rest | of_head, _refusal)
    safetensors.numpy.save_file(
        found, folder / "adapter_model.safetensors", {"format": "pt"}
    )
    text = json.dumps(
        {
            "auto_mapping": None,
            "base_model_name_or_path": config["encoder"]["name"],
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
    if ours.kind not in _TASKS:
        raise AdapterError(
            "PEFT has no multiple-choice task. Export the adapter with "
            "--format=adapterhub, or without head: --with_head=false."
        )
    saved = _SAVED[ours.kind]
    theirs = heads.huggingface_form(ours.kind, architecture)
    if (ours.reads, ours.hidden_layer) == (theirs.reads, theirs.hidden_layer):
        return _TASKS[ours.kind], theirs.tensor_names(), saved
    trains_pooler = theirs.reads == "pooled_output" and (
        ours.reads,
        ours.hidden_layer,
    ) == ("first_token", "tanh")
    if not trains_pooler:
        settings = f"head.reads={theirs.reads}"
        if theirs.hidden_layer != "none":
            settings += f",head.hidden_layer={theirs.hidden_layer}"
        raise AdapterError(
            f"PEFT saves the head of {architecture.class_name}"
            f"{heads.CLASSES[ours.kind]}, and this one is another: train with "
            f"--params_override={settings}, export with --format=adapterhub, "
            "or without head: --with_head=false."
        )
    form = heads.HeadForm(
        ours.kind, hidden_layer="tanh", modules=("classifier", _POOLER)
    )
    return _TASKS[ours.kind], form.tensor_names(), [*saved, "pooler"]


def _write_lora(method, shape, architecture, tensors):
    config, names = peft_lora.write(method, shape, architecture)
    return {"peft_type": "LORA", **config}, names, tensors


def _write_ia3(method, shape, architecture, tensors):
    if method.form != "peft" or method.leave_out:
        raise AdapterError(
            "PEFT has (IA)^3 as method.form=peft, in all blocks. AdapterHub's "
            "form is another function: export it with --format=adapterhub."
        )
    modules = [architecture.peft_module(name) for name in _IA3]
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
    return config, _ia3_names(method, shape, architecture), tensors


def _write_norms(method, shape, architecture, tensors):
    modules = {"LayerNorm", *architecture.norms.values()}
    config = {
        "exclude_modules": None,
        "peft_type": "LN_TUNING",
        "target_modules": sorted({name.split(".")[-1] for name in modules}),
    }
    return config, _norm_names(shape, architecture), tensors


def _of_prompt(kind, length, shape):
    return {
        "num_attention_heads": shape.num_heads,
        "num_layers": shape.num_blocks,
        "num_transformer_submodules": 1,
        "num_virtual_tokens": length,
        "peft_type": kind,
        "token_dim": shape.width,
    }


def _write_prefix(method, shape, architecture, tensors):
    if method.form != "peft" or method.leave_out or method.use_gating:
        raise AdapterError(
            "PEFT has prefix tuning as method.form=peft, in all blocks and "
            "without gates. AdapterHub's form is another function: export it "
            "with --format=adapterhub."
        )
    if architecture.model_type == "distilbert":
        raise AdapterError("PEFT's prefix tuning does not run on DistilBERT.")
    if method.hidden_units:
        tensors = {"shared_prefix/vectors": _vectors_of(method, tensors)}
    own = _of_prompt("PREFIX_TUNING", method.prefix_length, shape)
    own |= {"encoder_hidden_size": shape.width, "prefix_projection": False}
    name = TensorName("shared_prefix/vectors", ("prompt_embeddings",))
    return own, [name], tensors


def _vectors_of(method, tensors):
    """Returns what the network of a prefix gives, all that PEFT saves."""
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
            "PEFT has prompt tuning as method.form=peft. AdapterHub's form is "
            "another function: export it with --format=adapterhub."
        )
    own = _of_prompt("PROMPT_TUNING", method.prompt_length, shape)
    own |= {"prompt_tuning_init": "RANDOM", "prompt_tuning_init_text": None}
    own |= {"tokenizer_name_or_path": None}
    name = TensorName("prompt/vectors", ("prompt_embeddings",))
    return own, [name], tensors


def _refusal(left):
    return AdapterError(
        f"{len(left)} trained tensors have no place in PEFT's format, "
        f"`{left[0]}` for example. Export the adapter with "
        "--format=adapterhub."
    )
